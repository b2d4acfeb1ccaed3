#!/bin/sh
# Runs the sandboxed agent and holds its receipt against what really happened: with a wall the call that would write outside
# has failed, without one it has not, and the row about containment names which it was.
#
#   examples/sandbox.sh BIN
set -eu
case "${1:-}" in
'') echo 'usage: sandbox.sh BIN' >&2; exit 2 ;;
*/*) oma=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
*) oma=$1 ;;
esac
team=$(cd "$(dirname "$0")" && pwd)/teams/17-sandbox.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$oma" run --state state "$team" 2>err
run=$(ls state/runs)
"$oma" gate --team "$team" state/runs/"$run"/receipt.json

failed=$(sed -n 's/.*"failed": \([0-9]*\).*/\1/p' state/runs/"$run"/receipt.json)
held=$(grep -A2 '"control": "containment"' state/runs/"$run"/receipt.json | sed -n 's/.*"mechanism": "\(.*\)".*/\1/p')
case "$failed $held" in
'1 landlock, version '*) echo "held: $held" ;;
'0 commands run as they would without a sandbox: '*)
	grep -q 'bash runs without a sandbox' err
	echo "not held: $held" ;;
*)
	echo "calls that failed: $failed; the receipt says: $held" >&2
	exit 1 ;;
esac
