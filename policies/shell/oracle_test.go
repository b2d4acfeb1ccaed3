//go:build unix

package shell_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/policies/shell"
)

// stubs are the programs that bash finds instead of real ones. Each logs its name and does nothing else.
var stubs = []string{"rm", "ls", "git", "curl", "cat", "wc", "id", "touch"}

// starters are real: they do nothing but start what PATH finds.
var starters = []string{"bash", "sh", "env", "nice", "nohup", "timeout", "xargs", "setsid", "stdbuf"}

// oracle runs a line under a real bash in which nothing can do harm, and gives the names of the stubs that ran.
type oracle struct {
	start []string // bash with its options, ended by another program even if the test is killed: some lines go on for ever
	dir   string
	runs  int
}

func newOracle(t testing.TB) *oracle {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	o := &oracle{start: []string{bash, "--norc", "--noprofile", "-c"}, dir: t.TempDir()}
	if timeout, err := exec.LookPath("timeout"); err == nil {
		o.start = append([]string{timeout, "-s", "KILL", "5"}, o.start...)
	}
	bin := filepath.Join(o.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range stubs { // they log beside the folder they were found in, which is another for each run
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+" >>\"${0%/*}.log\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range starters {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

func (o *oracle) run(t testing.TB, line string) []string {
	t.Helper()
	o.runs++
	path := filepath.Join(o.dir, strconv.Itoa(o.runs))
	if err := os.Symlink("bin", path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".log", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.start[0], slices.Concat(o.start[1:], []string{line})...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + path, "FUNCNEST=20"} // no function goes on for ever, in subshells neither
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	_ = cmd.Run() // most lines fail in some way, which says nothing
	data, err := os.ReadFile(path + ".log")
	if err != nil {
		t.Fatal(err)
	}
	ran := strings.Fields(string(data))
	slices.Sort(ran)
	return slices.Compact(ran)
}

// hold says whether what bash ran is among the facts. What is not must have made the line not safe.
func (o *oracle) hold(t testing.TB, line string) (ran []string) {
	t.Helper()
	ran = o.run(t, line)
	f := shell.Classify(line, nil)
	for _, name := range ran {
		seen := slices.ContainsFunc(f.Commands, func(c shell.Command) bool { return c.Name == name })
		if !seen && f.Risk == shell.Safe {
			t.Errorf("bash ran %s in %q, which is said to be safe", name, line)
		}
		if seen && name == "rm" && f.Risk != shell.High {
			t.Errorf("%q runs rm and is %s", line, f.Risk)
		}
	}
	return ran
}

// TestOracle runs every way with every payload, and pairs of ways, and compares what ran with the facts.
func TestOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many shells")
	}
	o := newOracle(t)
	var ranRm, lines int
	try := func(line string) {
		lines++
		if slices.Contains(o.hold(t, line), "rm") {
			ranRm++
		}
	}
	for _, p := range payloads {
		try(p)
	}
	for _, way := range ways {
		try(way("rm -rf b"))
	}
	r := rand.New(rand.NewPCG(1, 2)) // always the same lines
	for range 150 {
		p := payloads[r.IntN(len(payloads))]
		try(ways[r.IntN(len(ways))](ways[r.IntN(len(ways))](p)))
	}
	if ranRm < lines/3 {
		t.Errorf("bash ran rm in %d of %d lines: the lines no longer test much", ranRm, lines)
	}
	t.Logf("%d lines, rm ran in %d", lines, ranRm)
}

// FuzzOracle goes on with three ways inside each other.
func FuzzOracle(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint8(2), uint8(3))
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, a, b, c, p uint8) {
		way := func(i uint8) func(string) string { return ways[int(i)%len(ways)] }
		o.hold(t, way(a)(way(b)(way(c)(payloads[int(p)%len(payloads)]))))
	})
}

// tokens make up texts that bash and the parser may read differently. No command but stubs and echo can come of them, no
// loop and no function.
var tokens = []string{"rm b", "ls", "echo", "a", " ", "\n", ";", "&", "|", "&&", "||", "!", "(", ")", "{ ", "; }", "$(", "`", "<(", ">(", "$((", "))", "((", "[[ ", " ]]", "$[", "]", "${x", "${#x", ":-", "#",
	"##", "/", "%", "}", "$x", "$1", "$#", "$?", "\"", "'", "$'", "$\"", "\\", "\\\n", "<<E", "<<'E'", "<<-E", "\nE\n", "<<<", "if ", "\nthen ", "\nfi", "case x in ", "x) ", ";;", "\nesac", "=", "x=", "x=(", "+=",
	"a[", "@(", "?(", "!(", "-eq ", "=~ ", "~", "*", "{a,", ",b}", "\t", "time ", "coproc ", "\\\"", "\\$", "\\`", "{", "-n ", "+", "1", ":", "@"}

// FuzzTokens compares what bash ran of texts that hardly anybody would write.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{"(echo $(ls)#;rm b\n)", "!(rm b)", "echo \"${x:-'$(rm b)'}\"", "[[ a =~ $(rm b) ]]", "echo $((1+$(rm b)))", "echo ${x:-`rm b`}", "case x in x) rm b;;\nesac", "ls <<E\n$(rm b)\nE\n"} {
		f.Add(tokenised(s))
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var line strings.Builder
		for _, i := range b[:min(len(b), 40)] {
			line.WriteString(tokens[int(i)%len(tokens)])
		}
		if flat := strings.Join(strings.Fields(strings.ReplaceAll(line.String(), "\\", "")), ""); strings.Contains(flat, "()") {
			return // a function could call itself
		}
		o.hold(t, line.String())
	})
}

// FuzzEdits puts tokens into lines that bash understands.
func FuzzEdits(f *testing.F) {
	for i := range ways {
		f.Add(uint8(i), uint8(len(ways)-1), uint8(i), []byte{5, 30})
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, a, b, p uint8, edits []byte) {
		way := func(i uint8) func(string) string { return ways[int(i)%(len(ways)-1)] } // the last names a device, and edits would name a file beside it
		line := way(a)(way(b)(payloads[int(p)%len(payloads)]))
		if strings.Contains(line, "while") || strings.Contains(line, "until") || strings.Contains(line, "((i=") {
			return // an edit could make a loop go on for ever
		}
		for i := 0; i+1 < min(len(edits), 6); i += 2 {
			at := int(edits[i]) % (len(line) + 1)
			line = line[:at] + tokens[int(edits[i+1])%len(tokens)] + line[at:]
		}
		o.hold(t, line)
	})
}

// tokenised is a text as indexes of tokens, the longest first.
func tokenised(s string) []byte {
	var out []byte
	for s != "" {
		best := -1
		for i, tok := range tokens {
			if strings.HasPrefix(s, tok) && (best < 0 || len(tok) > len(tokens[best])) {
				best = i
			}
		}
		if best < 0 {
			s = s[1:]
			continue
		}
		out = append(out, byte(best))
		s = s[len(tokens[best]):]
	}
	return out
}
