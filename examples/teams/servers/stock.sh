#!/bin/sh
# An MCP server of two tools on its standard streams: one message a line. It is small enough to be read, and understands no
# more than the example asks: a real server parses its JSON.
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
text() { printf '{"content":[{"type":"text","text":"%s"}]}' "$1"; }

item='{"type":"string","enum":["apples","pears"]}'
look='{"name":"look.up","description":"How many of an item are in stock.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"item":'$item'},"required":["item"]}}'
order='{"name":"order","description":"Order some of an item.","inputSchema":{"type":"object","properties":{"item":'$item',"count":{"type":"integer","minimum":1}},"required":["item","count"]}}'

while IFS= read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"method":"initialize"'*)
		answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stock","version":"1"}}' ;;
	*'"method":"tools/list"'*)
		answer "$id" '{"tools":['"$look,$order"']}' ;;
	*'"method":"tools/call"'*'"name":"look.up"'*)
		case $line in
		*'"item":"pears"'*) answer "$id" "$(text '3 pears')" ;;
		*) answer "$id" "$(text '12 apples')" ;;
		esac ;;
	*'"method":"tools/call"'*'"name":"order"'*)
		answer "$id" "$(text "ordered, at the account of ${STOCK_ACCOUNT:-nobody}")" ;;
	esac
done
