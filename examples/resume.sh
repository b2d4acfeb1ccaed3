#!/bin/sh
# Kills a run with SIGKILL in the middle, goes on with it, and holds the ledger and the receipt against a run that nobody
# killed.
#
#   examples/resume.sh BIN
set -eu
case "${1:-}" in
'') echo 'usage: resume.sh BIN' >&2; exit 2 ;;
*/*) oma=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
*) oma=$1 ;;
esac
team=$(cd "$(dirname "$0")" && pwd)/teams/10-resume.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$oma" run -q --state state "$team" >out 2>err &
while [ ! -s .agent-workspace/ledger.txt ]; do sleep 0.05; done
sleep 0.3 # now the model is asked for the second step
"$oma" runs list --state state --status running
# As root oma starts itself again, so the process that holds the run is asked for.
kill -9 "$("$oma" runs show --state state -o json "$(ls state/runs)" | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')"
wait || true

run=$(ls state/runs)
"$oma" runs list --state state --status interrupted
"$oma" resume --state state "$run"
"$oma" gate --team "$team" state/runs/"$run"/receipt.json
printf 'item 1\nitem 2\nitem 3\n' | cmp - .agent-workspace/ledger.txt
