#!/bin/sh
# A coding agent in small. Like a real one it gets its task on standard input, works in the folder it is started in, and says
# at the end on standard output what it did. A code other than 0 would fail its task.
set -eu
task=$(cat)
case $task in
*slugify*) ;;
*) echo 'this agent can write slugify and nothing else' >&2; exit 1 ;;
esac
cat >slugify.go <<'GO'
package slug

import (
	"regexp"
	"strings"
)

var between = regexp.MustCompile(`[^a-z0-9]+`)

// Slugify gives a text as a part of an address.
func Slugify(text string) string {
	return strings.Trim(between.ReplaceAllString(strings.ToLower(text), "-"), "-")
}
GO
echo 'Wrote slugify.go with func Slugify.'
