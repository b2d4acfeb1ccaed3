#!/bin/sh
# A coding agent in small that speaks the Agent Client Protocol on its standard streams: one message a line. It has oma write
# and read for it, and asks before it does anything itself. It is small enough to be read, and understands no more than the
# example asks: a real agent parses its JSON.
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
tell() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"1","update":%s}}\n' "$1"; }

# ask METHOD MEMBERS sends a request and leaves the answer in $line. No other one is open meanwhile.
asked=0
ask() {
	asked=$((asked + 1))
	printf '{"jsonrpc":"2.0","id":"ask-%s","method":"%s","params":{"sessionId":"1",%s}}\n' "$asked" "$1" "$2"
	IFS= read -r line
}

work() {
	tell '{"sessionUpdate":"plan","entries":[{"content":"write slugify.go","status":"in_progress"},{"content":"tidy up","status":"pending"}]}'
	ask fs/write_text_file '"path":"slugify.go","content":"package slug\n\nimport (\n\t\"regexp\"\n\t\"strings\"\n)\n\nvar between = regexp.MustCompile(`[^a-z0-9]+`)\n\n// Slugify gives a text as a part of an address.\nfunc Slugify(text string) string {\n\treturn strings.Trim(between.ReplaceAllString(strings.ToLower(text), \"-\"), \"-\")\n}\n"'
	case $line in *'"error"'*) said='It could not write slugify.go.'; return ;; esac
	ask fs/read_text_file '"path":"slugify.go"'
	case $line in
	*'func Slugify'*) said='Wrote slugify.go with func Slugify, and read it back.' ;;
	*) said='It could not read what it wrote.'; return ;;
	esac
	ask terminal/create '"command":"grep","args":["-c","func Slugify","slugify.go"]'
	ask terminal/wait_for_exit '"terminalId":"terminal-1"'
	tell '{"sessionUpdate":"tool_call","toolCallId":"tidy","title":"rm -rf ..","kind":"execute","status":"pending","rawInput":{"command":"rm -rf .."}}'
	ask session/request_permission '"toolCall":{"toolCallId":"tidy"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]'
	case $line in
	*'"yes"'*) said="$said It was let tidy up." ;; # and a real agent would
	*) said="$said It was not let tidy up." ;;
	esac
}

while IFS= read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"method":"initialize"'*) answer "$id" '{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) answer "$id" '{"sessionId":"1"}' ;;
	*'"method":"session/prompt"'*)
		work
		tell '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$said"'"}}'
		tell '{"sessionUpdate":"usage_update","used":1200,"size":200000,"cost":{"amount":0.0042,"currency":"USD"}}'
		answer "$id" '{"stopReason":"end_turn","usage":{"inputTokens":1100,"outputTokens":100,"totalTokens":1200}}'
		;;
	esac
done
