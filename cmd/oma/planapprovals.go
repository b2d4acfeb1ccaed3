package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

// approvalsText shows who decides what people are asked, and when they are.
func approvalsText(w io.Writer, p *spec.Plan) {
	a, asks := p.Approvals, asking(p)
	if a == nil && asks == nil {
		return
	}
	fmt.Fprintf(w, "\napprovals  %s\n", whoDecides(a))
	if a != nil {
		reviewersText(w, a)
		boundariesText(w, p)
	}
	if asks != nil {
		fmt.Fprintln(w, "  before a call is made")
	}
	for _, r := range asks {
		fmt.Fprintf(w, "    %-20s %-8s %s\n", named(r.Name), r.Action, appliesText(r))
	}
	if runtime.Confirms(p) {
		fmt.Fprintf(w, "  consequential calls need %s\n", confirmationText)
	}
}

// asking gives the rules over calls that ask people.
func asking(p *spec.Plan) (rules []*spec.PlanRule) {
	for i := range p.Gates.Rules {
		if r := &p.Gates.Rules[i]; r.Asks() {
			rules = append(rules, r)
		}
	}
	return rules
}

func appliesText(r *spec.PlanRule) string {
	var tools []string
	for _, c := range r.AppliesTo {
		tools = append(tools, c.Tool)
	}
	return strings.Join(tools, ", ")
}

func whoDecides(a *spec.PlanApprovals) string {
	if a == nil {
		return "anybody decides, by name"
	}
	s := "anybody decides, by name"
	switch n := len(a.Reviewers); {
	case n == 0 && a.Quorum > 1:
		s = fmt.Sprintf("%d must approve, anybody by name", a.Quorum)
	case a.Quorum > 1:
		s = fmt.Sprintf("%d of %d reviewers must approve", a.Quorum, n)
	case n > 1:
		s = fmt.Sprintf("any of %d reviewers decides", n)
	case n == 1:
		s = "one reviewer decides"
	}
	if a.SeparateApprover {
		s += ", not whoever starts the run"
	}
	if a.Expires > 0 {
		s += ", within " + a.Expires.String()
	}
	return s
}

func reviewersText(w io.Writer, a *spec.PlanApprovals) {
	for _, r := range a.Reviewers {
		proof := "signs"
		if r.PublicKey == "" {
			proof = "by name alone"
		}
		fmt.Fprintf(w, "  reviewer %-20s %s\n", named(r.ID), proof)
	}
}

// boundariesText shows the rules over the plan and its tasks, with what they say of this plan. Marks are not known yet.
func boundariesText(w io.Writer, p *spec.Plan) {
	seen, err := runtime.ForeseeApprovals(context.Background(), p)
	for _, s := range []struct {
		title string
		rules []spec.PlanRule
	}{{"before anything starts", p.Approvals.Plan}, {"before a task starts", p.Approvals.Dispatch}} {
		if len(s.rules) > 0 {
			fmt.Fprintf(w, "  %s\n", s.title)
		}
		for _, r := range s.rules {
			f, says := seen[r.Name], "does not match as planned"
			switch {
			case err != nil:
				says = ""
			case f.Error != "":
				says = "fails, which denies: " + escape(f.Error)
			case f.Tasks != nil:
				says = "matches " + strings.Join(f.Tasks, ", ")
			case f.Matches:
				says = "matches this plan"
			}
			fmt.Fprintf(w, "    %-20s %-8s %s\n", named(r.Name), r.Action, says)
		}
	}
}
