package shell_test

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/policies/shell"
)

// TestBounds feeds the costliest texts there are: each unit repeated up to the limit. The stack is capped, since one that
// overflows ends the process; the guard against hanging is far above what any takes.
func TestBounds(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(64 << 20))
	units := []string{"$(", "$((", "((", "( ", "{ ", "${a:-", "\"$(", "`", "<(", "<<a ", "<<a\n", "if ", "! ", "a|", "a&&", "a||", "a&", "a;", "a\n", "a=", "a=b ", "$", "$a", "$a ", "\"$a\" ",
		"case a in ", "case a in a) ", "\\\n", "{a,", "{a,b}", "a{,", "{a..", "{1..9}", "@(", "@(a)", "a=(", "function f ", "f() ", "f() { ", "while ", "$[", "select i in a; do ",
		"for i in a; do ", "coproc ", "time ", "${a/", "a[", "\"", "'", "''", "\"\"", "for((", "\"${a:-", "${a[", "elif a; then a;", "<<<a ", ">a ", ">$a ", "#", "\"#", "é", "[[ ", "let a[",
		"a=a[", "$(a ", "$(a);", "$(a) ", "`a` ", "$'\\x41'", "!(", "$(`", "<<'a' ", "${a:-\"", "declare ", "declare a=(", "nohup ", "env ", "timeout 5 ", "bash -c ", "eval ", "sudo ",
		"xargs -I{} ", "find . -exec ", "-exec a ; ", "a ; b | ", "((x)) ", "((x));", "x=a;", "x=a;((x));", "\x00", "\r", "*", "*.a ", "~/", "../", "a/../", "\\", "'}' ", "\"${x:-'}'}\" ",
		"rm b;", "rm b|sh|", "curl x|", "alias a=b ", "trap a;", "cat <<E\n$(a)\nE\n", "\u202e", "{rm,b} ", "sed s/a/b/ ", "git log;", "[ a ];", "[[ a ]];", "[[ a -eq b ]];", "echo a#b$(c)#d;"}
	for _, u := range units {
		whole := strings.Repeat(u, 64<<10/len(u))
		for _, text := range []string{whole, whole[:len(whole)/64], "echo " + whole[:len(whole)-16], "bash -c '" + strings.ReplaceAll(whole[:len(whole)-16], "'", "") + "'",
			"$((" + whole[:len(whole)-16] + "1))", "[[ " + whole[:len(whole)-16] + " ]]", "sed '" + whole[:len(whole)-16] + "'", strings.Repeat(u, 100) + "; rm b"} {
			start := time.Now()
			f := shell.Classify(text, nil)
			if d := time.Since(start); d > 5*time.Second {
				t.Errorf("%q took %v", u, d)
			}
			holds(t, text, f)
			if len(f.Findings) > 64 || len(f.Commands) > 1024 || len(f.Redirects) > 1024 || len(f.Writes) > 1024 {
				t.Errorf("%q: %d findings, %d commands, %d redirects, %d writes", u, len(f.Findings), len(f.Commands), len(f.Redirects), len(f.Writes))
			}
		}
	}
}

// TestLimits: what is beyond them is not safe, and what is high before them stays high.
func TestLimits(t *testing.T) {
	deep := "rm b"
	for range 10 {
		deep = "bash -c " + quoted(deep)
	}
	for name, tt := range map[string]struct{ command, want, code string }{
		"too long":           {"echo " + strings.Repeat("a", 64<<10), shell.Review, "too-long"},
		"just not too long":  {"echo " + strings.Repeat("a", 64<<10-5), shell.Safe, ""},
		"open brackets":      {strings.Repeat("( ", 257) + "ls" + strings.Repeat(")", 257), shell.Review, "too-deep"},
		"not too many open":  {strings.Repeat("( ", 200) + "ls" + strings.Repeat(")", 200), shell.Safe, ""},
		"brackets in all":    {strings.Repeat("echo $(ls) ')';", 2100), shell.Review, "too-deep"},
		"many that close":    {strings.Repeat("echo $(ls);", 2000), shell.Review, "too-many"},
		"wrappers":           {strings.Repeat("nohup ", 20) + "ls", shell.Review, "too-deep"},
		"not many wrappers":  {strings.Repeat("nohup ", 10) + "ls", shell.Safe, ""},
		"shells in shells":   {deep, shell.Review, ""},
		"many commands":      {strings.Repeat("ls;", 2000), shell.Review, "too-many"},
		"rm after them":      {strings.Repeat("ls;", 2000) + "rm b", shell.High, "destructive"},
		"rm after findings":  {strings.Repeat("frob;", 100) + "rm b", shell.High, "destructive"},
		"many brace words":   {"echo " + strings.Repeat("{a,b}", 20), shell.Safe, ""},
		"a name of braces":   {strings.Repeat("{a,b}", 20), shell.Review, "dynamic-command"},
		"control characters": {"ls \x01", shell.Review, "odd-characters"},
	} {
		f := shell.Classify(tt.command, nil)
		if f.Risk != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, f.Risk, f.Reason, tt.want)
		}
		found := tt.code == ""
		for _, x := range f.Findings {
			found = found || x.Code == tt.code
		}
		if !found {
			t.Errorf("%s: no finding is %s: %+v", name, tt.code, f.Findings)
		}
	}
}
