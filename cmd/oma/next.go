package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// nextLine is what to type next: to go on with a run that was stopped or that waits, else to have its receipt judged.
func (s *execution) nextLine(res *runtime.Result, path string) string {
	if s.goesOn(res) {
		return s.line(s.id, "resume")
	}
	return s.gateLine(path)
}

// goesOn says that a later attempt can go on with the run.
func (s *execution) goesOn(res *runtime.Result) bool {
	return s.log != nil && (res.Stopped || res.Suspended)
}

// line is a command about something in the state folder that this one was told.
func (s *execution) line(what string, verb ...string) string {
	words := append([]string{"oma"}, verb...)
	if s.f.state != "" {
		words = append(words, "--state", s.f.state)
	}
	return shellLine(append(words, what))
}

// waiting says what to type about each request that waits. In a run that has ended nobody can decide about one any more.
func (s *execution) waiting(r *spec.Receipt) {
	if r.Status.Code != spec.StatusSuspended {
		return
	}
	for _, p := range r.PendingApprovals {
		fmt.Fprintf(s.stderr, "waits for a person: %s\n  look:   %s\n  decide: %s\n      or: %s\n", s.outside(p.Scope+" at "+p.Boundary),
			s.line(p.RequestID, "approvals", "show"), s.line(p.RequestID, "approve"), s.line(p.RequestID, "reject"))
	}
}

// gateLine is what to type to have the run's receipt judged: with the yardstick that the run had, and with its log.
func (s *execution) gateLine(receipt string) string {
	words := []string{"oma", "gate"}
	if s.c.loaded == nil {
		words = append(words, "--plan", s.c.file)
	} else {
		words = append(words, s.f.teamFlags.words(s.c.file)...)
	}
	words = append(words, s.f.policyWords()...)
	switch log := filepath.Join(s.folder, logName); {
	case s.f.noJournal:
		words = append(words, "--no-log")
	case log != besideReceipt(receipt):
		words = append(words, "--events", log)
	}
	return shellLine(append(words, receipt))
}

// words are the flags that make the same plan of a team again.
func (f *teamFlags) words(team string) []string {
	words := []string{"--team", team}
	for _, flag := range []struct{ name, value string }{{"--agent", f.agent}, {"--goal", f.goal}, {"--goal-file", f.goalFile}} {
		if flag.value != "" {
			words = append(words, flag.name, flag.value)
		}
	}
	for _, in := range f.inputs {
		words = append(words, "--input", in)
	}
	return words
}

// policyWords are the flags for the policies that flags gave. Those of OMA_POLICY are there anyway.
func (f *teamFlags) policyWords() (words []string) {
	for _, path := range f.policies {
		words = append(words, "--policy", path)
	}
	return words
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+:,./=-]*$`)

// shellLine quotes the words that a shell would take apart.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		switch {
		case plainWord.MatchString(w):
			quoted[i] = w
		case strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsPrint(r) }):
			quoted[i] = "$'" + strings.ReplaceAll(strings.Trim(strconv.QuoteToGraphic(w), `"`), "'", `\'`) + "'"
		default:
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
