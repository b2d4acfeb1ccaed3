package roster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// Agent is what selection knows of an agent.
type Agent struct {
	Name, SystemPrompt, Model string
	Provider                  string // empty: it has none, since a program works in a model's place
	Backend                   string // llm, process or acp
	Tools                     []string
	Capabilities              []string
}

// Lacks gives what keeps an agent from a task, in a fixed order and in the reference's words (S1). nil: nothing does.
func Lacks(a *Agent, r *spec.Requires) (reasons []string) {
	if r == nil {
		return nil
	}
	missing := func(what string, want, have []string) {
		var names []string
		for _, n := range want {
			if !slices.Contains(have, n) {
				names = append(names, n)
			}
		}
		if names != nil {
			reasons = append(reasons, fmt.Sprintf("missing required %s: %s", what, strings.Join(names, ", ")))
		}
	}
	missing("tools", r.RequiredTools, a.Tools)
	missing("capabilities", r.RequiredCapabilities, a.Capabilities)
	if r.RequiredBackend != "" && a.Backend != r.RequiredBackend {
		reasons = append(reasons, fmt.Sprintf("backend %s does not satisfy required backend %s", a.Backend, r.RequiredBackend))
	}
	if r.RequiredProvider != "" && a.Provider != r.RequiredProvider {
		provider := a.Provider
		if provider == "" {
			provider = "undeclared"
		}
		reasons = append(reasons, fmt.Sprintf("provider %s does not satisfy required provider %s", provider, r.RequiredProvider))
	}
	return reasons
}

// profile is an agent with its texts made ready, once for all tasks.
type profile struct {
	*Agent
	text     string   // of its name and prompt, in lower case
	keywords []string // of these and its model
}

func profiles(agents []Agent) []profile {
	out := make([]profile, len(agents))
	for i := range agents {
		a := &agents[i]
		text := a.Name + " " + a.SystemPrompt
		out[i] = profile{a, strings.ToLower(text), keywords(text + " " + a.Model)}
	}
	return out
}

// subject is a text that agents are held against, made ready.
type subject struct {
	text     string // in lower case
	words    map[string]bool
	keywords []string
}

func subjectOf(text string) *subject {
	s := &subject{text: strings.ToLower(text), words: map[string]bool{}, keywords: keywords(text)}
	for _, w := range words(text) {
		s.words[w] = true
	}
	return s
}

// score is how well an agent fits (S3): one for each of its capabilities that the subject names, and k/(k+1) for k words
// that they share, each counted once from either side.
func (s *subject) score(a *profile) float64 {
	affinity, k := 0, 0
	for _, c := range a.Capabilities {
		if s.names(c) {
			affinity++
		}
	}
	for _, w := range s.keywords {
		if strings.Contains(a.text, w) {
			k++
		}
	}
	for _, w := range a.keywords {
		if strings.Contains(s.text, w) {
			k++
		}
	}
	return float64(affinity) + float64(k)/float64(k+1)
}

// names says that every word of a capability stands in the subject.
func (s *subject) names(capability string) bool {
	all := words(capability)
	for _, w := range all {
		if !s.words[w] {
			return false
		}
	}
	return len(all) > 0
}

// Candidate is what selection found of one agent.
type Candidate struct {
	Agent string
	Score float64
	Lacks []string // why it cannot. nil: it can
}

// Best gives who fits a text best of all that can do it, with everybody's figures in the order of the agents. Of equals the
// first by name wins. Empty: nobody can.
func Best(text string, r *spec.Requires, agents []Agent) (name string, all []Candidate) {
	s, best := subjectOf(text), -1.0
	for _, a := range profiles(agents) {
		c := Candidate{Agent: a.Name, Lacks: Lacks(a.Agent, r)}
		if c.Lacks == nil {
			c.Score = s.score(&a)
			if c.Score > best || c.Score == best && a.Name < name {
				name, best = a.Name, c.Score
			}
		}
		all = append(all, c)
	}
	return name, all
}
