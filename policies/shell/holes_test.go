package shell_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/policies/shell"
)

// TestWordsThatMayBeOptions: what a program does not take as the value of the option before it may be an option itself.
func TestWordsThatMayBeOptions(t *testing.T) {
	check(t, list(notSafe, `x=--output=f; git diff -M "$x"`, `git log -W "$x"`, `git log -w "$x"`, `git show -C "$x"`, `git diff -U "$x"`, `git diff -L "$x"`, `git shortlog -n "$x"`,
		`git shortlog --committer "$x"`, `git blame -S "$x"`, `x=--set=1; date -I "$x"`, `date -uI "$x"`,
		`t=';'; find . -exec grep x {} "$t" -delete -exec echo {} ';'`, `x='a {} ; -delete -exec echo'; find . -exec grep $x {} ';'`, `find . -name *`, `find . -name -*`, `find . -name *e`,
		`find . -exec grep x * ';'`, `x=-v; y='a[$(rm b)]'; [ "$x" "$y" ]`, `x=-v; [ "$x" 'a[$(rm b)]' ]`, `x=-v; test -n a -a "$x" "$y"`,
		`echo x | xargs --replace=1 awk 1 f`, `echo x | xargs --rep=1 awk 1 f`, `echo x | xargs -i1 awk 1 f`))
	check(t, list(safe, `git log -S "$x"`, `git log -n "$n"`, `git log -L "$x"`, `git log --author "$x"`, `git diff -U5 a`, `git log -M50 a`, `date -Iseconds`, `date -Is`, `date -d "$x" -I`,
		`find . -name *.go`, `find . -name "$x"`, `find . -exec grep "$x" {} ';'`, `find . -exec grep -l "$x" {} +`, `[ "$x" = y -a "$y" = z ]`, `[ "$x" ]`, `[ -n "$x" ]`, `[ ! -f "$x" ]`,
		`test "$a" -gt "$b"`, `ls | xargs --replace=% cat %`))
}

// TestWhereCommandsAct: another folder has another configuration of git.
func TestWhereCommandsAct(t *testing.T) {
	check(t, list(notSafe, "env -C d git status", "env --chdir=d git status", "env --chd d git status", "find . -name x -execdir git status ';'", "XDG_CONFIG_HOME=d; git status",
		"TEXTDOMAINDIR=d; echo $\"x\"", "GAWK_PERSIST_FILE=f gawk '{x=1}' f", "ls | xargs --process-slot-var=LD_LIBRARY_PATH cat", "ls | xargs --process-slot-var PATH cat",
		"git log --format=%G? -1", "git show --pretty '%h %GS'"))
	check(t, list(safe, "env -u X ls", "ls | xargs --process-slot-var=SLOT cat", "git log --format='%h %g'"))
	check(t, list(high, "time -- rm b", "env -a x rm b", "env --argv0=x rm b"))
}

// TestHighByOtherWords: the same act, spelled otherwise.
func TestHighByOtherWords(t *testing.T) {
	check(t, list(high, `git push origin "+$b"`, `git push origin ":$b"`, "chmod -- 777 f", "chmod 666 f", "chmod 0777 f", "chmod 2 f", "cargo +nightly publish"))
	check(t, list(review, "git push origin main", "chmod 755 f", "chmod 644 f", "chmod 600 -- f", "cargo +nightly test"))
}

// TestDailyReading: lines of every day that only read.
func TestDailyReading(t *testing.T) {
	check(t, list(safe, `awk -F, '$3 > 10 {n++} END {exit n}' f`, `awk 'NR>=10 && NR<=20' f`, `awk 'length > 80' f`, `awk '$1=="a" || $2=="b" {print $3}' f`, `awk '$1>=2 {print}' f`,
		`cat f | rg x`, `git log | rg -n fix`, `rg x <<< "$y"`, `git log --oneline -5 --format=%H`, `find . -print0 | xargs -0 grep x`, `[[ $a =~ ^[0-9]+$ ]] && cat f`,
		"cat <<'E'\nit's $(rm b)\nE", `jq -r '.[] | select(.a > 1) | "\(.b)"' f`, `for f in *.go; do wc -l "$f"; done`, `test -f x && cat x`))
	check(t, list(notSafe, `awk '{print > "f"}' f`, `awk '{print >> "f"}' f`, `awk '{print >>="f"}' f`, `awk '{printf "x" > "f"}' f`, `awk '{print ||| "sh"}' f`, `awk '{print|"sh"}' f`,
		`cat f | rg --files`, `rg x`, `rg x < f`, "sed ':a;a\\\nw f' f", "sed 'b;a\\\nw f' f"))
}

// TestEveryCodeIsListed: rules compare codes, so that no number of findings may hide one.
func TestEveryCodeIsListed(t *testing.T) {
	for _, many := range []string{"frob;", "ls >f;", "rm b;", "frob; ls >f; curl x; cd d; f() { ls; };"} {
		f := shell.Classify(strings.Repeat(many, 100)+`bash -c "$X"; npm publish`, nil)
		for _, code := range []string{"dynamic-code", "publishes"} {
			if !slices.ContainsFunc(f.Findings, func(x shell.Finding) bool { return x.Code == code }) {
				t.Errorf("%s: no finding is %s", many, code)
			}
		}
		if len(f.Findings) != 64 || !strings.HasSuffix(f.Findings[63].Reason, " more findings are not listed") {
			t.Errorf("%s: %d findings, the last says %q", many, len(f.Findings), f.Findings[len(f.Findings)-1].Reason)
		}
		holds(t, many, f)
	}
}
