#!/bin/sh
# Plays a release that a person must approve, as two CI jobs and a reviewer on another machine: the first job suspends and
# leaves what it waits for, the reviewer signs, the second job goes on. Every outcome is held against what it must be.
#
#   examples/approval.sh BIN
set -eu
case "${1:-}" in
'') echo 'usage: approval.sh BIN' >&2; exit 2 ;;
*/*) oma=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
*) oma=$1 ;;
esac
teams=$(cd "$(dirname "$0")" && pwd)/teams
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset OMA_AUTHOR OMA_REVIEWER OMA_STATE OMA_POLICY

# ends CODE COMMAND… wants a command to end with a code. What it said is in err, and shown where it is not so.
ends() {
	want=$1
	shift
	got=0
	"$@" 2>err || got=$?
	[ "$got" = "$want" ] || { echo "ends $got, want $want: $*"; cat err; exit 1; } >&2
}

# The reviewer has a key, here one of a kind that every openssl can make. The team declares its public half.
mkdir reviewer judge
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out reviewer/bob.pem 2>/dev/null
chmod 600 reviewer/bob.pem
openssl pkey -in reviewer/bob.pem -pubout -out bob.pub.pem
cp -R "$teams/cassettes" judge/
awk '/BEGIN PUBLIC KEY/ { while ((getline line < "bob.pub.pem") > 0) print "        " line; old = 1 }
	!old { print }
	/END PUBLIC KEY/ { old = 0 }' "$teams/11-approval.yaml" >judge/team.yaml
team=$work/judge/team.yaml

# The first job. Its runner is gone afterwards: what is left is the artifact.
mkdir runner
cd runner
ends 6 "$oma" run --author ann --state ../state --receipt ../receipt.json "$team"
[ ! -e .agent-workspace/registry ] || { echo 'it was published before anybody approved it' >&2; exit 1; }
id=$("$oma" approvals --state ../state -o json | sed -n 's/^ *"id": "\(apr_[0-9a-f]*\)",$/\1/p')
run=$(ls ../state/runs)
ends 0 "$oma" approvals export --state ../state --out ../request.json "$id"
cd ..
ends 6 "$oma" gate --team "$team" --state state receipt.json >/dev/null
tar -cf artifact.tar state runner receipt.json
rm -rf state runner receipt.json

# The reviewer, who has the request and the key and nothing else.
cd reviewer
mv ../request.json .
ends 0 "$oma" approvals show request.json
ends 2 "$oma" approve request.json --reviewer bob                        # unsigned
ends 2 "$oma" approve request.json --reviewer ann --key bob.pem          # no reviewer
ends 0 "$oma" approve request.json --reviewer bob --key bob.pem --reason 'the notes are right' --out decision.json
sed 's/the notes are right/whatever/' decision.json >forged.json
ends 0 "$oma" reject request.json --reviewer bob --key bob.pem --out changed-my-mind.json
cd ..

# The second job, in folders of the same names.
tar -xf artifact.tar
cd runner
ends 0 "$oma" plan --out ../plan.json "$team"
cmp ../plan.json ../state/runs/"$run"/plan.json                          # its rules and reviewers are the team file's
ends 6 "$oma" resume --state ../state "$run"                             # nobody has decided here yet
ends 2 "$oma" approvals import --state ../state ../reviewer/forged.json
ends 0 "$oma" approvals import --state ../state ../reviewer/decision.json
ends 7 "$oma" approvals import --state ../state ../reviewer/changed-my-mind.json
ends 0 "$oma" resume --state ../state "$run"
ends 2 "$oma" resume --state ../state "$run"                             # it has ended
echo 1.2 | cmp - .agent-workspace/registry/index
cd ..
ends 0 "$oma" gate --team "$team" --state state receipt.json
grep -q '"reviewer": *"bob"' receipt.json
