#!/bin/sh
# Validates, plans, runs and gates every example, and holds the exit codes against those in its header:
#   # exit: N         what oma run ends with; 2: the policy refuses a team that is valid without it
#   # gate: N         what oma gate --team ends with, where that is another code
#   # policy: PATH    a policy from above for every command, relative to the example
#   # says: TEXT      a part of what oma run says; may be repeated
# Then it runs the policy tests, kills a run to go on with it, plays an approval, and tries a wall.
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

declared() { sed -n "s/^# $1: //p" "$2"; }

# under FILE puts what follows under the policy that an example names, or under none.
under() {
	policy=$(declared policy "$1")
	OMA_POLICY=${policy:+$teams/$policy}
	export OMA_POLICY
}

# check NAME FILE prints what differs, and nothing when nothing does.
check() {
	want=$(declared exit "$2")
	gate=$(declared gate "$2")
	[ -n "$want" ] || { echo "has no line # exit: N"; return; }
	[ "$want" = 2 ] || under "$2"
	"$oma" validate --strict "$2" >out 2>err || { echo "is not valid:"; cat err; return; }
	[ -s err ] && { echo "is valid, and oma says:"; cat err; return; }
	under "$2"
	[ "$want" = 2 ] || "$oma" plan -o json "$2" >plan 2>err || { echo "has no plan:"; cat err; return; }
	"$oma" run --state "$work/$1" "$2" </dev/null >out 2>err
	got=$?
	[ "$got" = "$want" ] || { echo "run ends $got, want $want:"; cat err; return; }
	declared says "$2" >says
	while IFS= read -r text; do
		grep -qF -- "$text" err || { echo "run does not say: $text"; cat err; return; }
	done <says
	[ "$want" != 2 ] || return
	"$oma" gate --team "$2" "$work/$1"/runs/*/receipt.json >out 2>err
	got=$?
	[ "$got" = "${gate:-$want}" ] || { echo "gate ends $got, want ${gate:-$want}:"; cat out err; }
}

# report NAME PROBLEM SUCCESS prints one line for what went well.
report() {
	if [ -z "$2" ]; then
		echo "ok    $1  $3"
	else
		printf 'FAIL  %s  %s\n' "$1" "$2"
		failed=1
	fi
}

failed=0
unset OMA_POLICY
export OMA_AUTHOR=ann # also in a CI job, where nobody is the author by themselves
for file in "$teams"/*.yaml; do
	name=$(basename "$file" .yaml)
	problem=$(check "$name" "$file")
	want=$(declared exit "$file")
	gate=$(declared gate "$file")
	[ "$want" = 2 ] && said="is refused above" || said="run $want, gate ${gate:-$want}"
	report "$name" "$problem" "$said"
done
for file in "$teams"/../*/*.test.yaml; do
	problem=$("$oma" policy test "$file" 2>&1 >out) || problem="fails: $problem$(cat out)"
	report "$(basename "$file" .yaml)" "$problem" "its cases hold"
done
problem=$("$teams/../resume.sh" "$oma" 2>&1 >/dev/null) && problem= || problem="fails: $problem"
report resume "$problem" "a run that was killed goes on"
problem=$("$teams/../approval.sh" "$oma" 2>&1 >/dev/null) && problem= || problem="fails: $problem"
report approval "$problem" "a call waits for a signature, is approved elsewhere, and runs once"
problem=$("$teams/../sandbox.sh" "$oma" 2>&1 >said) && problem= || problem="fails: $problem"
report sandbox "$problem" "$(sed -n 's/held: .*/held, as its receipt says/p' said)"
exit $failed
