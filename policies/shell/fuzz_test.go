package shell_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/policies/shell"
)

// FuzzClassify: any text gives facts that hold together, and what is put before or after a text counts.
func FuzzClassify(f *testing.F) {
	for _, s := range payloads {
		f.Add(s)
		for _, way := range ways {
			f.Add(way(s))
		}
	}
	for _, s := range []string{"", "\x00", "$'\\0'", "{a,{b,c}}{1..3}", "${", "a[", "<<a", "[[ a", "find . -exec", "sed s/", "git -c", "env -S", "xargs -I", "bash -c", "date -s", "chmod"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		got := shell.Classify(command, nil)
		holds(t, command, got)
		if got.ParseError || strings.HasSuffix(command, "\\") { // which goes on in the next line
			return
		}
		for _, text := range []string{command + "\nrm -rf x", "rm -rf x\n" + command} {
			if more := shell.Classify(text, nil); len(text) <= 64<<10 && more.Risk != shell.High && !more.ParseError {
				t.Errorf("%q is %s", text, more.Risk)
			}
		}
		inside := shell.Classify("(\n"+command+"\n)", nil)
		if shell.Worse(got.Risk, inside.Risk) {
			t.Errorf("%q is %s, and %s in a subshell", command, got.Risk, inside.Risk)
		}
	})
}

// holds checks what is true of all facts.
func holds(t *testing.T, command string, f shell.Facts) {
	t.Helper()
	if f.Reason == "" || f.Findings == nil || f.Commands == nil || f.Redirects == nil || f.Writes == nil {
		t.Fatalf("%q: facts are not filled in: %+v", command, f)
	}
	worst := shell.Safe
	for _, x := range f.Findings {
		if x.Code == "" || x.Reason == "" || x.Level != shell.Review && x.Level != shell.High || x.Line < 1 || x.Column < 1 {
			t.Fatalf("%q: finding %+v", command, x)
		}
		if strings.HasPrefix(x.Reason, "the command cannot be read") {
			t.Fatalf("%q: something panicked: %s", command, x.Reason)
		}
		if utf8.ValidString(command) && !utf8.ValidString(x.Text) {
			t.Fatalf("%q: finding cuts a character: %q", command, x.Text)
		}
		if shell.Worse(x.Level, worst) {
			worst = x.Level
		}
	}
	if worst != f.Risk {
		t.Fatalf("%q: risk is %s, findings say %s", command, f.Risk, worst)
	}
	if (f.ParseError || strings.TrimSpace(command) == "") && f.Risk == shell.Safe {
		t.Fatalf("%q was not read and is safe", command)
	}
	for _, c := range f.Commands {
		if c.Args == nil || c.DynamicArgs == nil || c.Assignments == nil || !c.Dynamic && len(c.DynamicArgs) > 0 {
			t.Fatalf("%q: command %+v", command, c)
		}
		if !slices.IsSorted(c.DynamicArgs) || len(c.DynamicArgs) > 0 && c.DynamicArgs[len(c.DynamicArgs)-1] >= len(c.Args) {
			t.Fatalf("%q: command %+v", command, c)
		}
	}
}
