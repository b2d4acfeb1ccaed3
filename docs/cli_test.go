package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// help asks the program itself what it takes.
type help struct {
	program string
	known   map[string][]string // flags by verb
}

func newHelp(t *testing.T) *help {
	t.Helper()
	program := filepath.Join(t.TempDir(), "oma")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/oma").CombinedOutput(); err != nil {
		t.Fatalf("the program does not build: %v\n%s", err, out)
	}
	return &help{program, map[string][]string{}}
}

var (
	flagLine = regexp.MustCompile(`(?m)^ +(?:(-\w), |    )(--[a-z-]+)`)
	verbLine = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)
)

// flags gives the flags of a verb, such as "policy check". nil: there is no such verb.
func (h *help) flags(verb string) []string {
	if f, ok := h.known[verb]; ok {
		return f
	}
	h.known[verb] = nil
	out, err := exec.Command(h.program, append(strings.Fields(verb), "--help")...).Output()
	if err != nil || !strings.Contains(string(out), "oma "+verb) {
		return nil
	}
	for _, m := range flagLine.FindAllStringSubmatch(string(out), -1) {
		h.known[verb] = append(h.known[verb], m[2])
		if m[1] != "" {
			h.known[verb] = append(h.known[verb], m[1])
		}
	}
	return h.known[verb]
}

// verbs gives the commands below one.
func (h *help) verbs(t *testing.T, of ...string) (out []string) {
	t.Helper()
	text, err := exec.Command(h.program, append(of, "--help")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range verbLine.FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	return out
}

// started finds where a command line of oma begins.
var started = regexp.MustCompile(`(?:^|[;&|(] *|\$ |- run: |\s\|\| )(?:go run \./cmd/oma|(?:bin/|\./)?oma) +(\S.*)$`)

// TestCommandLine holds the pages against the program's own help, in both directions.
func TestCommandLine(t *testing.T) {
	h := newHelp(t)
	t.Run("what is shown exists", h.testShown)
	t.Run("what exists is told", h.testTold)
}

// testShown looks at every command line, in blocks and between backticks.
func (h *help) testShown(t *testing.T) {
	seen := 0
	check := func(at, line string) {
		m := started.FindStringSubmatch(line)
		if m == nil {
			return
		}
		seen++
		command, _, _ := strings.Cut(m[1], " #")
		if problem := h.problem(strings.Fields(command)); problem != "" {
			t.Errorf("%s: %s: %s", at, line, problem)
		}
	}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.lang == "sh" || b.lang == "yaml" {
				for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
					check(b.at, strings.TrimSpace(line))
				}
			}
		}
		for i, line := range p.prose() {
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				check(at(p, i), m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d command lines were found", seen)
	}
}

var flagWord = regexp.MustCompile(`^(--[a-z-]+|-\w)(=.*)?$`)

// problem says what of a command line the program does not take.
func (h *help) problem(words []string) string {
	if strings.HasPrefix(words[0], "-") || words[0] == "help" || words[0] == "VERB" {
		return ""
	}
	verb := words[0]
	if len(words) > 1 && slices.Contains([]string{"approvals", "mcp", "policy", "completion", "receipt", "runs"}, verb) && !strings.HasPrefix(words[1], "-") {
		verb += " " + words[1]
	}
	if verb == "plan" && len(words) > 1 && words[1] == "diff" { // plan does something itself, too
		verb = "plan diff"
	}
	flags := h.flags(verb)
	if flags == nil {
		return "there is no verb " + verb
	}
	for _, w := range words {
		if w == "|" || w == "&&" || w == ";" || w == "||" {
			break
		}
		if m := flagWord.FindStringSubmatch(w); m != nil && !slices.Contains(flags, m[1]) {
			return "there is no flag " + m[1]
		}
	}
	return ""
}

// testTold wants each verb and each of its flags in cli.md: in the verb's section, or with those that verbs share.
func (h *help) testTold(t *testing.T) {
	p := readPage(t, "cli.md")
	told := func(section string) []string {
		var flags []string
		for _, m := range code.FindAllStringSubmatch(strings.Join(p.under(t, section), "\n"), -1) {
			flag, _, _ := strings.Cut(m[1], " ")
			flags = append(flags, flag)
		}
		return flags
	}
	always, ofTeams := told("Flags of every verb"), told("Flags of every verb that reads a team")
	for _, verb := range h.leaves(t) {
		flags := h.flags(verb)
		shared := slices.Clone(always)
		if slices.Contains(flags, "--goal-file") {
			shared = append(shared, ofTeams...)
		}
		for _, f := range flags {
			if !slices.Contains(shared, f) && !slices.Contains(told("oma "+verb), f) {
				t.Errorf("cli.md does not tell of %s of oma %s", f, verb)
			}
		}
	}
}

// leaves gives the verbs that do something themselves.
func (h *help) leaves(t *testing.T) (out []string) {
	for _, verb := range h.verbs(t) {
		below := h.verbs(t, verb)
		switch {
		case verb == "help" || verb == "completion":
		case len(below) == 0 || verb == "plan":
			out = append(out, verb)
		}
		for _, sub := range below {
			if verb != "completion" {
				out = append(out, verb+" "+sub)
			}
		}
	}
	return out
}
