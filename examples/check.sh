#!/bin/sh
# Validates, plans, runs and gates every example, and holds the exit codes against those in its header:
#   # exit: N    what oma run ends with
#   # gate: N    what oma gate --team ends with, where that is another code
#
#   examples/check.sh BIN
#
# Runs are kept in a temporary folder, and nothing is written into this one.
set -u
case "${1:-}" in
'') echo 'usage: check.sh BIN' >&2; exit 2 ;;
*/*) oma=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
*) oma=$1 ;;
esac
teams=$(cd "$(dirname "$0")" && pwd)/teams
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 3

declared() { sed -n "s/^# $1: \([0-9][0-9]*\)\$/\1/p" "$2"; }

# check NAME FILE prints what differs, and nothing when nothing does.
check() {
	want=$(declared exit "$2")
	gate=$(declared gate "$2")
	[ -n "$want" ] || { echo "has no line # exit: N"; return; }
	"$oma" validate --strict "$2" >out 2>err || { echo "is not valid:"; cat err; return; }
	[ -s err ] && { echo "is valid, and oma says:"; cat err; return; }
	"$oma" plan -o json "$2" >plan 2>err || { echo "has no plan:"; cat err; return; }
	"$oma" run --state "$work/$1" "$2" </dev/null >out 2>err
	got=$?
	[ "$got" = "$want" ] || { echo "run ends $got, want $want:"; cat err; return; }
	"$oma" gate --team "$2" "$work/$1"/runs/*/receipt.json >out 2>err
	got=$?
	[ "$got" = "${gate:-$want}" ] || { echo "gate ends $got, want ${gate:-$want}:"; cat out err; }
}

failed=0
for file in "$teams"/*.yaml; do
	name=$(basename "$file" .yaml)
	problem=$(check "$name" "$file")
	if [ -z "$problem" ]; then
		gate=$(declared gate "$file")
		echo "ok    $name  run $(declared exit "$file"), gate ${gate:-$(declared exit "$file")}"
	else
		printf 'FAIL  %s  %s\n' "$name" "$problem"
		failed=1
	fi
done
exit $failed
