package shell_test

import (
	"testing"

	"github.com/open-multi-agent/oma/policies/shell"
)

func TestExtension(t *testing.T) {
	levels := []shell.Level{
		{Match: []string{"go", "test"}, Level: shell.Safe, Reason: "tests"},
		{Match: []string{"go", "test", "-exec"}, Level: shell.Review},
		{Match: []string{"cat"}, Level: shell.High, Reason: "no reading"},
		{Match: []string{"rm"}, Level: shell.Safe},
		{Match: []string{"rm", "-i"}, Level: shell.Safe, Override: true},
		{Match: []string{"./gradlew", "test"}, Level: shell.Safe},
		{Match: []string{"twice"}, Level: shell.Safe},
		{Match: []string{"twice"}, Level: shell.Review},
		{Match: []string{"timeout"}, Level: shell.High},
		{Match: []string{"bash"}, Level: shell.Safe},
	}
	for command, want := range map[string]string{
		"go test ./...":                 shell.Safe,
		"go test $x":                    shell.Safe,
		"/usr/bin/go test":              shell.Safe,
		"nice go test":                  shell.Safe,
		`"go" te''st`:                   shell.Safe,
		"CI=1 go test":                  shell.Safe,
		"go test | head":                shell.Safe,
		"go vet":                        shell.Review,
		"go $x":                         shell.Review,
		"go -C d test":                  shell.Review,
		"./go test":                     shell.Review, // another program
		"~/go test":                     shell.Review,
		"go test -exec ./x":             shell.Review, // the longest match
		"go test >f":                    shell.Review, // redirects are judged by themselves
		"go test >/etc/x":               shell.High,
		"go test $(rm b)":               shell.High,
		"go test; rm b":                 shell.High,
		"go test && frob":               shell.Review,
		"GOFLAGS=-toolexec=./x go test": shell.Review,
		"PATH=. go test":                shell.Review,
		"sudo go test":                  shell.High, // the wrapper is judged by itself
		"go test() { rm b; }; go test":  shell.Review,
		"cat a":                         shell.High,
		"rm b":                          shell.High, // built in, and not overridden
		"rm -i b":                       shell.Safe,
		"rm -i b >/etc/x":               shell.High,
		"./gradlew test":                shell.Safe,
		"gradlew test":                  shell.Review,
		"twice":                         shell.Review, // the strictest of two
		"timeout 5 ls":                  shell.High,
		"bash -c 'ls'":                  shell.Safe, // of bash itself
		"bash -c 'rm b'":                shell.High,
		"ls | bash":                     shell.High,
		"go test #":                     shell.Safe,
	} {
		if got := shell.Classify(command, levels); got.Risk != want {
			t.Errorf("%q is %s (%s), want %s", command, got.Risk, got.Reason, want)
		}
	}
	if got := shell.Classify("cat a", levels).Reason; got != "no reading" {
		t.Errorf("reason is %q", got)
	}
}

func TestCheckLevel(t *testing.T) {
	for _, tt := range []struct {
		level shell.Level
		want  string // empty: fine
	}{
		{shell.Level{Match: []string{"go", "test"}, Level: shell.Safe}, ""},
		{shell.Level{Match: []string{"rm"}, Level: shell.High}, ""},
		{shell.Level{Match: []string{"rm"}, Level: shell.Safe, Override: true}, ""},
		{shell.Level{Match: []string{"rm"}, Level: shell.Review}, `"rm" is always high, which level "review" does not lower without override`},
		{shell.Level{Match: []string{"/bin/rm", "-i"}, Level: shell.Safe}, `"/bin/rm" is always high, which level "safe" does not lower without override`},
		{shell.Level{Match: []string{"go"}, Level: "hihg"}, `level "hihg" is none of safe, review, high`},
		{shell.Level{Level: shell.Safe}, "match is empty: want the words a command starts with"},
		{shell.Level{Match: []string{""}, Level: shell.Safe}, "match is empty: want the words a command starts with"},
		{shell.Level{Match: []string{"go test"}, Level: shell.Safe}, `match holds "go test": want one word each, [go, test]`},
		{shell.Level{Match: []string{"git", "commit", "-m", "a b"}, Level: shell.Safe}, ""},
		{shell.Level{Match: []string{"a\nb"}, Level: shell.Safe}, `match holds "a\nb": want one word each`},
	} {
		got := ""
		if err := shell.CheckLevel(tt.level); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.level, got, tt.want)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []string{shell.Safe, shell.Review, shell.High, "other"}
	for i, a := range order {
		for j, b := range order {
			if got := shell.Worse(a, b); got != (i > j) {
				t.Errorf("Worse(%s, %s) is %t", a, b, got)
			}
		}
	}
}
