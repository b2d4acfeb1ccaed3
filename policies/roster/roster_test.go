package roster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// S1: what an agent lacks, in the reference's words.
func TestLacks(t *testing.T) {
	llm := &Agent{Name: "a", Backend: "llm", Provider: "p", Tools: []string{"bash", "grep"}, Capabilities: []string{"go"}}
	program := &Agent{Name: "b", Backend: "process"}
	for _, c := range []struct {
		name  string
		agent *Agent
		r     *spec.Requires
		want  []string
	}{
		{"nothing is required", program, nil, nil},
		{"all is there", llm, &spec.Requires{RequiredTools: []string{"bash"}, RequiredCapabilities: []string{"go"}, RequiredBackend: "llm", RequiredProvider: "p"}, nil},
		{"tools", llm, &spec.Requires{RequiredTools: []string{"bash", "x", "y"}}, []string{"missing required tools: x, y"}},
		{"capabilities, letter for letter", llm, &spec.Requires{RequiredCapabilities: []string{"Go"}}, []string{"missing required capabilities: Go"}},
		{"backend", llm, &spec.Requires{RequiredBackend: "acp"}, []string{"backend llm does not satisfy required backend acp"}},
		{"provider", llm, &spec.Requires{RequiredProvider: "q"}, []string{"provider p does not satisfy required provider q"}},
		{"a program has none", program, &spec.Requires{RequiredProvider: "q"}, []string{"provider undeclared does not satisfy required provider q"}},
		{"all at once", program, &spec.Requires{RequiredTools: []string{"x"}, RequiredCapabilities: []string{"c"}, RequiredBackend: "llm", RequiredProvider: "p"},
			[]string{"missing required tools: x", "missing required capabilities: c", "backend process does not satisfy required backend llm", "provider undeclared does not satisfy required provider p"}},
	} {
		if diff := cmp.Diff(c.want, Lacks(c.agent, c.r)); diff != "" {
			t.Errorf("%s\n%s", c.name, diff)
		}
	}
}

func TestKeywords(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"Review the release, REVIEW it!":    "review release",
		"with this that your":               "",
		"go cli api docs":                   "docs",
		"審查代码 and release":                  "審查 查代 代码 release",
		"データ処理":                             "デー ータ タ処 処理",
		"a-b_c d1234":                       "d1234",
		"naïve Ångström":                    "naïve ångström",
		"mixed日本text":                       "mixed 日本 text",
		"\x00\xff broken":                   "broken",
		"review\u200bers":                   "review",
		strings.Repeat("same ", 3) + "word": "same word",
	} {
		if got := strings.Join(keywords(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// S3: one for each capability that is named, and k/(k+1) for what words have in common. Of equals the first by name.
func TestBest(t *testing.T) {
	agents := []Agent{
		{Name: "writer", SystemPrompt: "You write release notes.", Model: "large"},
		{Name: "checker", SystemPrompt: "You check release notes.", Model: "large"},
		{Name: "gopher", SystemPrompt: "x", Capabilities: []string{"go", "code review"}},
	}
	for _, c := range []struct {
		subject string
		r       *spec.Requires
		want    string
		scores  string
	}{
		{"nothing in common", nil, "checker", "0.00 0.00 0.00"},
		{"write the release notes", nil, "writer", "0.86 0.80 0.00"},
		{"a code review in Go", nil, "gopher", "0.00 0.00 2.00"},
		{"a review of code", nil, "gopher", "0.00 0.00 1.00"}, // every word of the tag is there
		{"goes on", nil, "checker", "0.00 0.00 0.00"},         // a tag is a whole word
		{"write the release notes", &spec.Requires{RequiredCapabilities: []string{"go"}}, "gopher", "0.00 0.00 0.00"},
		{"write the release notes", &spec.Requires{RequiredCapabilities: []string{"rust"}}, "", "0.00 0.00 0.00"},
	} {
		got, all := Best(c.subject, c.r, agents)
		var scores []string
		for _, a := range all {
			scores = append(scores, fmt.Sprintf("%.2f", a.Score))
		}
		if s := strings.Join(scores, " "); got != c.want || s != c.scores {
			t.Errorf("%q: %q by %s, want %q by %s", c.subject, got, s, c.want, c.scores)
		}
	}
}

// S4: the five strategies.
func TestAssign(t *testing.T) {
	agents := []Agent{{Name: "c", SystemPrompt: "sources and tests", Backend: "llm"}, {Name: "b", SystemPrompt: "documentation", Backend: "llm"}, {Name: "a", Backend: "process"}}
	open := func(n int) []Task { return make([]Task, n) }
	chain := []Task{{}, {DependsOn: []int{2}}, {}, {DependsOn: []int{1}}} // 2 before 1 before 3
	named := []Task{{Subject: "read the documentation"}, {Subject: "read the sources"}, {Subject: "else"}, {Subject: "else"}}
	model := []Task{{}, {Requires: &spec.Requires{RequiredBackend: "llm"}}, {Requires: &spec.Requires{RequiredBackend: "llm"}}, {}}
	for _, c := range []struct {
		name string
		o    Options
		in   []Task
		want string
	}{
		{"in turn", Options{Strategy: RoundRobin}, open(5), "c b a c b"},
		{"in turn, never one that cannot", Options{Strategy: RoundRobin}, model, "c b c b"},
		{"dependency-first is the default: who most wait for goes first", Options{}, chain, "a b c c"},
		{"the least busy, of equals the first in the team", Options{Strategy: LeastBusy}, model, "c b c a"},
		{"what fits; nothing fits: in turn", Options{Strategy: CapabilityMatch}, named, "b c c b"},
		{"composite: fit and load", Options{Strategy: Composite}, named, "b c a a"},
		{"composite: load alone, of equals the first by name", Options{Strategy: Composite, Weights: &spec.Weights{Load: 1}}, open(4), "a b c a"},
		{"composite: fit alone", Options{Strategy: Composite, Weights: &spec.Weights{Fit: 1}}, named, "b c a a"},
		{"what is declared stays", Options{}, []Task{{Assignee: "b"}, {}, {Assignee: "b"}}, "b c b"},
		{"no agent is asked for what nobody can", Options{}, []Task{{Requires: &spec.Requires{RequiredTools: []string{"x"}}}, {}}, " c"},
	} {
		var got []string
		for _, a := range Assign(c.o, c.in, agents) {
			got = append(got, a.Agent)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
	nobody := Assign(Options{}, []Task{{Requires: &spec.Requires{RequiredTools: []string{"x"}}}, {Assignee: "a", Requires: &spec.Requires{RequiredBackend: "llm"}}}, agents)
	want := []Assignment{{Reasons: []string{"c: missing required tools: x", "b: missing required tools: x", "a: missing required tools: x"}},
		{Agent: "a", Reasons: []string{"backend process does not satisfy required backend llm"}}}
	if diff := cmp.Diff(want, nobody); diff != "" {
		t.Error(diff)
	}
}

func TestDependants(t *testing.T) {
	diamond := []Task{{}, {DependsOn: []int{0}}, {DependsOn: []int{0}}, {DependsOn: []int{1, 2}}, {}}
	if got := dependants(diamond); !slices.Equal(got, []int{3, 1, 1, 0, 0}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkAssign(b *testing.B) {
	agents := make([]Agent, 20)
	for i := range agents {
		agents[i] = Agent{Name: fmt.Sprintf("agent%d", i), SystemPrompt: strings.Repeat(fmt.Sprintf("You do things of kind %d well. ", i), 20), Backend: "llm"}
	}
	for _, strategy := range []string{DependencyFirst, CapabilityMatch} {
		for _, n := range []int{1000, 10000} {
			tasks := make([]Task, n)
			for i := range tasks {
				tasks[i].Subject = fmt.Sprintf("Do the thing with number %d, and write down what came of it.", i)
				for d := max(0, i-3); d < i; d++ {
					tasks[i].DependsOn = append(tasks[i].DependsOn, d)
				}
			}
			b.Run(fmt.Sprintf("%s/%d", strategy, n), func(b *testing.B) {
				for b.Loop() {
					Assign(Options{Strategy: strategy}, tasks, agents)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
			})
		}
	}
}
