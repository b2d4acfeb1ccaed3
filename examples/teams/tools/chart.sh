#!/bin/sh
# Draws a bar for each count, as a GIF that nothing was compressed in, and gives it beside what it shows: an object
# {data, modelOutput}, for output: rich. It needs base64 and nothing else.
set -eu
passed=$1 failed=$2 wide=126 most=$(($1 + $2))
[ "$most" -gt 0 ] || { echo 'there is nothing to draw' >&2; exit 1; }

# repeat N TEXT
repeat() { n=0; while [ "$n" -lt "$1" ]; do printf %s "$2"; n=$((n + 1)); done; }

# bar COUNT COLOUR gives ten rows. A row is a block of its own: how long it is, a code that clears the table, a code a pixel.
bar() {
	long=$(($1 * wide / most))
	row="\\177\\200$(repeat "$long" "$2")$(repeat $((wide - long)) '\000')"
	printf "$(repeat 10 "$row")"
}

picture=$({
	printf 'GIF87a\176\000\024\000\366\000\000'                     # 126 times 20 pixels, 128 colours:
	printf '\377\377\377\040\240\100\320\060\060'                   # white, green, red,
	printf "$(repeat 375 '\000')"                                    # and black
	printf '\054\000\000\000\000\176\000\024\000\000\007'
	bar "$passed" '\001'
	bar "$failed" '\002'
	printf '\001\201\000;'
} | base64 | tr -d '\n')

cat <<JSON
{"data": {"passed": $passed, "failed": $failed},
 "modelOutput": [
  {"type": "text", "text": "$passed passed (green), $failed failed (red):"},
  {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "$picture"}}]}
JSON
