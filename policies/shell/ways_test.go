package shell_test

import "strings"

// quoted is text as one word in single quotes.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// doubled is text inside double quotes that stays as it is.
func doubled(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s)
}

// ways are texts in which bash runs a line, or does not.
var ways = []func(string) string{
	func(s string) string { return "ls; " + s },
	func(s string) string { return "ls & " + s },
	func(s string) string { return "ls\n" + s + "\n" },
	func(s string) string { return "ls || :\n\n# x\n" + s },
	func(s string) string { return "! " + s },
	func(s string) string { return "( " + s + " )" },
	func(s string) string { return "(" + s + "\n)" },
	func(s string) string { return "{ " + s + "\n}" },
	func(s string) string { return "!(" + s + ")" },
	func(s string) string { return "ls ||" + s },
	func(s string) string { return "echo a | " + s },
	func(s string) string { return s + " |& cat" },
	func(s string) string { return "if " + s + "\nthen :; fi" },
	func(s string) string { return "if false; then :; elif " + s + "\nthen :; else :; fi" },
	func(s string) string { return "if false; then :; else " + s + "\nfi" },
	func(s string) string { return "while " + s + "\ndo break; done" },
	func(s string) string { return "until ! " + s + "\ndo break; done" },
	func(s string) string { return "for i in 1; do " + s + "\ndone" },
	func(s string) string { return "for i in $(" + s + "\n); do :; done" },
	func(s string) string { return "for ((i=0; i<1; i++)); do " + s + "\ndone" },
	func(s string) string { return "case x in x) " + s + "\n;; esac" },
	func(s string) string { return "case $(" + s + "\n) in *) :;; esac" },
	func(s string) string { return "case x in $(" + s + "\n)) :;; esac" },
	func(s string) string { return "f() { " + s + "\n}; f" },
	func(s string) string { return "function f { " + s + "\n}; f" },
	func(s string) string { return "wc() (" + s + "\n); wc" },
	func(s string) string { return "coproc { " + s + "\n}; wait" },
	func(s string) string { return "time " + s },
	func(s string) string { return "echo $(" + s + "\n)" },
	func(s string) string { return `echo "$(` + s + "\n)\"" },
	func(s string) string { return "echo `" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`" },
	func(s string) string { return "echo '$(" + strings.ReplaceAll(s, "'", "") + ")'" },
	func(s string) string { return `echo "\$(` + doubled(s) + `)"` },
	func(s string) string { return "echo ${x:-$(" + s + "\n)}" },
	func(s string) string { return `echo "${x:-$(` + s + "\n)}\"" },
	func(s string) string { return `echo "${x:-'$(` + strings.ReplaceAll(s, "'", "") + ")'}\"" },
	func(s string) string { return "echo ${x:-'$(" + strings.ReplaceAll(s, "'", "") + ")'}" },
	func(s string) string { return `echo "${x:-'}"; ` + strings.ReplaceAll(s, "'", "") + `; echo "'}"` },
	func(s string) string { return `echo "${x#'$(` + strings.ReplaceAll(s, "'", "") + ")'}\"" },
	func(s string) string { return "x=$(" + s + "\n)" },
	func(s string) string { return "x=(a $(" + s + "\n))" },
	func(s string) string { return "a[$(" + s + "\n)]=1" },
	func(s string) string { return "declare x=$(" + s + "\n)" },
	func(s string) string { return "export X=$(" + s + "\n) && ls" },
	func(s string) string { return "echo $((1+0$(" + s + "\n)))" },
	func(s string) string { return "((x=0$(" + s + "\n)))" },
	func(s string) string { return "x='a[$(" + strings.ReplaceAll(s, "'", "") + ")]'; echo $((x))" },
	func(s string) string { return "x='a[$(" + strings.ReplaceAll(s, "'", "") + ")]'; [[ $x -eq 1 ]]" },
	func(s string) string { return "x='a[$(" + strings.ReplaceAll(s, "'", "") + ")]'; echo ${y:x} ${y[x]}" },
	func(s string) string { return "[ -v 'a[$(" + strings.ReplaceAll(s, "'", "") + ")]' ]" },
	func(s string) string { return "x='$(" + strings.ReplaceAll(s, "'", "") + ")'; echo ${x@P}" },
	func(s string) string { return "x='$(" + strings.ReplaceAll(s, "'", "") + ")'; echo $x \"${x}\"" },
	func(s string) string { return "[[ -n $(" + s + "\n) ]]" },
	func(s string) string { return "[[ a =~ $(" + s + "\n) ]]" },
	func(s string) string { return "cat <(" + s + "\n); wait" },
	func(s string) string { return "echo a > >(" + s + "\n); wait" },
	func(s string) string { return "cat <<E\n$(" + s + "\n)\nE" },
	func(s string) string { return "cat <<'E'\n$(" + s + "\n)\nE" },
	func(s string) string { return "cat <<-E\n\t${x:-'$(" + strings.ReplaceAll(s, "'", "") + ")'}\n\tE" },
	func(s string) string { return "cat <<< \"$(" + s + "\n)\"" },
	func(s string) string { return "cat < <(" + s + "\n)" },
	func(s string) string { return "eval " + quoted(s) },
	func(s string) string { return "bash -c " + quoted(s) },
	func(s string) string { return "bash -ec \"" + doubled(s) + "\"" },
	func(s string) string { return "sh -c " + quoted(s) + " x y" },
	func(s string) string { return "bash <<< " + quoted(s) },
	func(s string) string { return "bash <<'EOT'\n" + s + "\nEOT" },
	func(s string) string { return "trap " + quoted(s) + " EXIT" },
	func(s string) string { return "shopt -s expand_aliases\nalias ls=" + quoted(s) + "\nls" },
	func(s string) string { return "shopt -s extglob\necho @(a|$(" + s + "\n))" },
	func(s string) string { return "PS4='$(" + strings.ReplaceAll(s, "'", "") + ")'; set -x; :" },
	func(s string) string { return "env bash -c " + quoted(s) },
	func(s string) string {
		return "env -S 'bash -c " + `"` + doubled(doubled(strings.ReplaceAll(s, "'", ""))) + `"'`
	},
	func(s string) string { return "timeout -k 1 5 nice -n 1 bash -c " + quoted(s) },
	func(s string) string { return "echo a | xargs -I{} bash -c " + quoted(s) },
	func(s string) string { return "f() { " + s + "\n}; export -f f; bash -c f" },
	func(s string) string { return "# " + s },
	func(s string) string { return "echo a#" + s },
	func(s string) string { return "echo \\\n" + s },
	func(s string) string { return "ls \\\n; \\\n" + s },
	func(s string) string { return "x=1 " + s },
	func(s string) string { return ">/dev/null " + s },
}

// payloads are ways to write one command.
var payloads = []string{
	"rm -rf b", `\rm b`, `"rm" b`, `r\m b`, `r""m b`, `$'rm' b`, `$'\x72\155' b`, "r\\\nm b", "{rm,-rf,b}", "r{m,} b", "command rm b", "builtin command rm b", "exec rm b", "nice rm b",
	"nice -n 5 rm b", "env rm b", "env -i PATH=\"$PATH\" rm b", "env -u X A=1 rm b", "timeout 5 rm b", "timeout -s KILL 5 rm b", "nohup rm b", "setsid rm b", "stdbuf -oL rm b", "echo b | xargs rm",
	"echo b | xargs -n 1 -I{} rm {}", "${x:-rm} b", "$(echo rm) b", "x=rm; $x b", "IFS=/; x=rm/b; $x", "ls", "git push --force", "git -C . push -f", "touch a; rm a", "echo rm", "echo 'rm b'", "r?", "id <<<rm",
}
