package main

import (
	"os/exec"
	"strings"
	"testing"
)

// A line that is shown to be typed means to a shell what it was made of.
func TestShellLine(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"oma", "gate", "--team", "a/team.yaml", "base=HEAD~1"}, "oma gate --team a/team.yaml 'base=HEAD~1'"},
		{[]string{"it's", "", "$HOME `x`", "=a", "a=b"}, `'it'\''s' '' '$HOME ` + "`x`' '=a' a=b"},
		{[]string{"two\nlines, it's \\ and \"\x1b[2J"}, `$'two\nlines, it\'s \\ and \"\x1b[2J'`},
	} {
		got := shellLine(c.words)
		if got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if _, err := exec.LookPath("bash"); err != nil {
			continue
		}
		out, err := exec.Command("bash", "-c", `printf '%s\0' `+got).Output()
		if want := strings.Join(c.words, "\x00") + "\x00"; err != nil || string(out) != want {
			t.Errorf("a shell reads %q, want %q, %v", out, want, err)
		}
	}
}
