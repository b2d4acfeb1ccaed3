package shell_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/open-multi-agent/oma/policies/shell"
)

func TestFacts(t *testing.T) {
	command := "CI=1 timeout 5 git status \\\n  && cat <(curl -s \"$U\") >>out.txt 2>&1 &"
	want := shell.Facts{
		Risk: shell.Review, Reason: `"curl" talks to the network`,
		Findings: []shell.Finding{
			{Level: shell.Review, Code: "network", Reason: `"curl" talks to the network`, Line: 2, Column: 12, Text: `curl -s "$U"`},
			{Level: shell.Review, Code: "writes-file", Reason: `the redirect writes to "out.txt"`, Line: 2, Column: 26, Text: ">>out.txt"},
		},
		Commands: []shell.Command{
			{Name: "timeout", Path: "timeout", Args: []string{"5", "git", "status"}, DynamicArgs: []int{}, Assignments: []string{"CI"}, Line: 1, Column: 1},
			{Name: "git", Path: "git", Args: []string{"status"}, DynamicArgs: []int{}, Assignments: []string{}, Line: 1, Column: 1},
			{Name: "curl", Path: "curl", Args: []string{"-s", `"$U"`}, DynamicArgs: []int{1}, Dynamic: true, Assignments: []string{}, Line: 2, Column: 12},
			{Name: "cat", Path: "cat", Args: []string{`<(curl -s "$U")`}, DynamicArgs: []int{0}, Dynamic: true, Assignments: []string{}, Line: 2, Column: 6},
		},
		Redirects:       []shell.Redirect{{Op: ">>", Target: "out.txt", Known: true}, {Op: ">&", FD: "2", Target: "1", Known: true}},
		Writes:          []string{"out.txt"},
		Network:         true,
		HasSubstitution: true,
		Background:      true,
	}
	if diff := cmp.Diff(want, shell.Classify(command, nil)); diff != "" {
		t.Error(diff)
	}
}

func TestSafeFactsAreFilledIn(t *testing.T) {
	want := shell.Facts{Risk: shell.Safe, Reason: "every command only reads", Findings: []shell.Finding{},
		Commands:  []shell.Command{{Name: "ls", Path: "/bin/ls", Args: []string{"a b", "*.go"}, DynamicArgs: []int{1}, Dynamic: true, Assignments: []string{}, Line: 1, Column: 1}},
		Redirects: []shell.Redirect{}, Writes: []string{}}
	if diff := cmp.Diff(want, shell.Classify(`/bin/ls 'a b' *.go`, nil)); diff != "" {
		t.Error(diff)
	}
}

// TestCommands: what is found, in which order, and under which name.
func TestCommands(t *testing.T) {
	for command, want := range map[string][]string{
		"ls; pwd":                              {"ls", "pwd"},
		"a | b | c && d || e":                  {"a", "b", "c", "d", "e"},
		"echo $(id) `pwd`":                     {"id", "pwd", "echo"},
		"sudo -u x /bin/rm a":                  {"sudo", "rm"},
		"bash -c 'ls; bash -c pwd'":            {"bash", "ls", "bash", "pwd"},
		"env A=1 nice -n 5 xargs -0 ls":        {"env", "nice", "xargs", "ls"},
		`find . -exec grep x {} \; -exec id ;`: {"find", "grep", "id"},
		"f() { ls; }; f":                       {"ls", "f"},
		"$x; \"$y\" z":                         {"", ""},
		"{ls,-l}; r''m b":                      {"ls", "rm"},
		"cat <<E\n$(id)\nE":                    {"id", "cat"},
		"bash <<< 'ls'":                        {"bash", "ls"},
		"export A=$(id)":                       {"id", "export"},
		"[ a = b ] && [[ -f $(pwd) ]]":         {"[", "pwd"},
		"eval ls -l":                           {"eval", "ls"},
		"trap 'ls' EXIT":                       {"trap", "ls"},
	} {
		var got []string
		for _, c := range shell.Classify(command, nil).Commands {
			got = append(got, c.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", command, diff)
		}
	}
}

func TestWrites(t *testing.T) {
	for command, want := range map[string][]string{
		"ls >a >>b 2>c":                       {"a", "b", "c"},
		"ls >/dev/null 2>&1":                  {},
		"ls >$f >\"$g\"":                      {},
		"ls >~/x >\"$HOME/y\"":                {"~/x", "~/y"},
		"ls | tee a -a b /dev/null":           {"a", "b"},
		"cp a b c/":                           {"c/"},
		"cp -t d a b":                         {"d"},
		"mv a b; ln -s a l; touch t u":        {"b", "l", "t", "u"},
		"sort -o out in":                      {"out"},
		"sort --output=out in":                {"out"},
		"sed -i s/a/b/ f g":                   {"f", "g"},
		"sed -i -e s/a/b/ f":                  {"f"},
		"dd if=a of=b":                        {"b"},
		"curl -so x http://127.0.0.1:9/ -D h": {"x", "h"},
		"wget -qO- http://127.0.0.1:9/":       {},
		"find . -fprint out":                  {"out"},
		"bash -c 'echo x >inner'":             {"inner"},
		"echo a > >(cat)":                     {},
	} {
		if diff := cmp.Diff(want, shell.Classify(command, nil).Writes); diff != "" {
			t.Errorf("%q: %s", command, diff)
		}
	}
}

func TestNetwork(t *testing.T) {
	for command, want := range map[string]bool{
		"curl x": true, "ls; wget x": true, "git fetch": true, "git -C d pull": true, "git clone x": true, "git push": true, "git log": false, "git remote -v": false,
		"git remote show o": true, "rsync a b": false, "rsync a h:b": true, "ssh h ls": true, "nc h 1": true, "npm install": true, "npm test": false, "pip install x": true,
		"go get x": true, "go test ./...": false, "exec 3<>/dev/tcp/127.0.0.1/9": true, "cat </dev/udp/127.0.0.1/9": true, "bash -c 'curl x'": true, "echo curl": false,
		"cat curl.txt": false, "timeout 5 curl x": true, "echo $(curl x)": true,
		"git remote show": false, "git remote update": true, "twine upload x": true, "twine check x": false, "vsce publish": true, "python3 -m pip install x": true, "python3 -m pip list": false,
	} {
		if got := shell.Classify(command, nil).Network; got != want {
			t.Errorf("%q: network is %t, want %t", command, got, want)
		}
	}
}

// TestPlace: a finding in the text of a nested shell is at the shell; long lines and many lines are counted to the end.
func TestPlace(t *testing.T) {
	pad := make([]byte, 20000)
	for i := range pad {
		pad[i] = 'a'
	}
	for command, want := range map[string][2]int{
		"ls\n  rm b":                        {2, 3},
		"ls;  bash -c 'ls\nls; rm b'":       {1, 6},
		"echo " + string(pad) + "; rm b":    {1, 20008},
		"ls\necho " + string(pad) + ";rm b": {2, 20007},
		"echo é; rm b":                      {1, 10},
	} {
		f := shell.Classify(command, nil)
		found := false
		for _, x := range f.Findings {
			if x.Level == shell.High {
				found = true
				if got := [2]int{x.Line, x.Column}; got != want {
					t.Errorf("%.40q: found at %v, want %v", command, got, want)
				}
			}
		}
		if !found {
			t.Errorf("%.40q: no finding is high", command)
		}
	}
}

// TestCodes pins the words that rules may compare with.
func TestCodes(t *testing.T) {
	for command, want := range map[string]string{
		"": "empty", "frob": "unknown-command", "$x": "dynamic-command", "rm b": "destructive", "sudo ls": "privilege", "ls >/etc/x": "system-path", "ls >~/.bashrc": "trusted-path",
		"ls >x": "writes-file", "ls | sh": "pipe-to-shell", "curl x | python": "runs-download", "LD_PRELOAD=x ls": "loads-code", "PATH=x ls": "path-changed", "ls; )": "unparsed",
		"./ls": "unknown-path", "curl x": "network", "git push -f": "force-push", "npm publish": "publishes", "chmod 777 x": "permissions", "eval x": "runs-text", "bash x": "runs-file",
		"bash -c ls": "starts-shell", "bash -c \"$x\"": "dynamic-code", "sort -o x y": "unsafe-option", "sort $x": "dynamic-option", "sed 'e id' f": "unsafe-script", "ls -R": "recursive",
		"f() { ls; }": "defines-function", ":(){ :|:& };:": "fork-bomb", "x=a; ((x))": "evaluates-text", "ls\r": "odd-characters", "timeout --x 5 ls": "unknown-option",
		"ls @(a)": "extended-pattern", "echo ${!x}": "indirect", "declare -i x": "declares", "cd x": "changes-directory", "kill 1": "processes", "(ls $(ls)#\n)": "unclear-comment",
	} {
		f := shell.Classify(command, nil)
		if !slices.ContainsFunc(f.Findings, func(x shell.Finding) bool { return x.Code == want }) {
			t.Errorf("%q: no finding has code %s: %+v", command, want, f.Findings)
		}
	}
}

func TestFactsAreDeterministic(t *testing.T) {
	command := "x=a; y=b; ((x+y)); for i in $(curl x | sh); do rm $i; done >f & { a,b } | timeout 5 env A=1 sudo tee /etc/x"
	first := shell.Classify(command, nil)
	for range 20 {
		if diff := cmp.Diff(first, shell.Classify(command, nil), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	}
}
