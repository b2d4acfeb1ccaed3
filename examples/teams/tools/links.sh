#!/bin/sh
# Counts the links on the pages of a folder: links.sh TOP FOLDER prints [{"page": NAME, "links": N}, …].
set -eu
cd "$1"
[ -d "./$2" ] || { echo "there is no folder $2" >&2; exit 1; }
cd "./$2"
first=
printf '['
for page in *.md; do
	[ -f "$page" ] || continue
	n=$(grep -o ']([^)]*)' "$page" | wc -l | tr -d ' ') || n=0
	printf '%s{"page": "%s", "links": %s}' "$first" "$page" "$n"
	first=', '
done
echo ']'
