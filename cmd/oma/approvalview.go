package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/policies/shell"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

// approvalView is the document approvals show prints, and each of approvals list.
type approvalView struct {
	spec.ApprovalRequest
	Team             string         `json:"team"`
	Author           string         `json:"author,omitempty"` // by their own word
	RunStatus        journal.Status `json:"runStatus,omitempty"`
	Decision         string         `json:"decision"`
	Authenticated    bool           `json:"authenticated"`
	Approvals        int            `json:"approvals"` // that count so far
	Quorum           int            `json:"quorum"`
	Reviewers        []reviewerView `json:"reviewers,omitempty"` // nil: anybody
	SeparateApprover bool           `json:"separateApprover,omitempty"`
	Votes            []voteView     `json:"votes,omitempty"`
	Shell            *shellView     `json:"shell,omitempty"` // of a call of bash

	content spec.ApprovalContent // as far as it is one
	command string
}

type reviewerView struct {
	ID    string `json:"id"`
	KeyID string `json:"keyId,omitempty"` // empty: the name alone is believed
}

type voteView struct {
	spec.ApprovalVote
	Counts bool   `json:"counts"`
	Why    string `json:"why,omitempty"` // it does not count
}

type shellView struct {
	Level    string        `json:"level"`
	Reason   string        `json:"reason"`
	Findings []riskFinding `json:"findings"`
}

// record says what came of a request by now.
func (m *matter) record(now time.Time) spec.ApprovalRecord {
	return policies.ConcludeApproval(m.Approvals, m.Author, &m.ApprovalRequest, m.Votes, now)
}

// concludes is how the store says what comes of the request.
func (m *matter) concludes(now func() time.Time) journal.Conclude {
	return func(a *journal.Approval) spec.ApprovalRecord {
		return policies.ConcludeApproval(m.Approvals, m.Author, &a.ApprovalRequest, a.Decisions, now())
	}
}

// view is what a person sees of a request.
func (m *matter) view(now time.Time) *approvalView {
	rec := m.record(now)
	v := &approvalView{ApprovalRequest: m.ApprovalRequest, Team: m.Team, Author: m.Author, RunStatus: m.status, Decision: rec.Decision,
		Authenticated: rec.Authenticated, Approvals: approving(&rec), Quorum: needed(m.Approvals), Votes: m.votes(&rec)}
	if m.Approvals != nil {
		v.SeparateApprover = m.Approvals.SeparateApprover
		for _, r := range m.Approvals.Reviewers {
			v.Reviewers = append(v.Reviewers, reviewerView{r.ID, keyID(r.PublicKey)})
		}
	}
	if json.Unmarshal(m.Content, &v.content) != nil {
		v.content = spec.ApprovalContent{}
	}
	var input struct {
		Command *string `json:"command"`
	}
	if (v.content.ToolName == "bash" || v.content.ToolName == spec.PermissionTool) && json.Unmarshal(v.content.Input, &input) == nil && input.Command != nil {
		v.command, v.Shell = *input.Command, riskOf(*input.Command, m.levels)
	}
	return v
}

// open says that somebody can still decide.
func (v *approvalView) open() bool {
	return v.Decision == spec.ApprovalPending && v.RunStatus != journal.StatusEnded
}

func approving(rec *spec.ApprovalRecord) (n int) {
	for _, v := range rec.Votes {
		if v.Verdict == spec.VerdictApprove {
			n++
		}
	}
	return n
}

// votes says of every decision whether it counts. Those that do are in the record, in the same order.
func (m *matter) votes(rec *spec.ApprovalRecord) (all []voteView) {
	counted := rec.Votes
	for _, v := range m.Votes {
		if len(counted) > 0 && sameVote(&v, &counted[0]) {
			all, counted = append(all, voteView{v, true, ""}), counted[1:]
			continue
		}
		why := "it was decided by then, or they had said something already"
		if err := policies.VoteRefused(m.Approvals, m.Author, &m.ApprovalRequest, &v); err != nil {
			why = err.Error()
		} else if !m.Expires.IsZero() && !v.DecidedAt.Before(m.Expires) {
			why = "it came too late"
		}
		all = append(all, voteView{v, false, why})
	}
	return all
}

// sameVote says that two decisions are one. When they were made is not signed, and no part of them.
func sameVote(a, b *spec.ApprovalVote) bool {
	return a.Reviewer == b.Reviewer && a.Verdict == b.Verdict && a.Reason == b.Reason && bytes.Equal(a.Signature, b.Signature)
}

// keyID names a public key. Empty: there is none. A compiled plan has none that cannot be read.
func keyID(text string) string {
	if text == "" {
		return ""
	}
	key, err := keys.ReadPublic([]byte(text))
	if err != nil {
		return "unreadable"
	}
	return key.ID()
}

func riskOf(command string, levels []shell.Level) *shellView {
	f := shell.Classify(command, levels)
	out := &shellView{f.Risk, f.Reason, []riskFinding{}}
	for _, x := range f.Findings {
		out.Findings = append(out.Findings, riskFinding{x.Level, x.Code, x.Reason, x.Line, x.Column, x.Text})
	}
	return out
}

func (a *app) approvalsShow(ctx context.Context, what string, f *approvalFlags) error {
	if err := f.printable(); err != nil {
		return err
	}
	m, err := a.matterOf(ctx, what, f)
	if err != nil {
		return err
	}
	v, most := m.view(a.now()), shownBytes
	if f.all {
		most = noLimit
	}
	if err := a.print(f.output, v, func(w io.Writer) { a.approvalText(w, v, most) }); err != nil || f.output != "text" {
		return err
	}
	if m.status != "" {
		what = m.ID
	}
	switch {
	case len(v.Content) > most: // nobody is led to decide about what was not shown
		a.next(f.line("approvals", "show", "--all", what) + " | less")
	case v.open():
		by := decidedBy(v)
		a.next(f.line("approve", what) + by + "   or: " + f.line("reject", what) + by)
	}
	return nil
}

// decidedBy is how a decision that counts names who makes it. Empty: anybody may.
func decidedBy(v *approvalView) string {
	who := undecided(v)
	if len(who) == 0 {
		return ""
	}
	words := []string{"--reviewer", "NAME"}
	if len(who) == 1 {
		words[1] = who[0].ID
	}
	if slices.ContainsFunc(who, func(r reviewerView) bool { return r.KeyID != "" }) {
		words = append(words, "--key", "FILE")
	}
	return " " + shellLine(words)
}

// matterOf gives the request that an argument means: one in a store, or one in a file.
func (a *app) matterOf(ctx context.Context, what string, f *approvalFlags) (*matter, error) {
	if isFile(what) {
		return a.requestFile(what, f)
	}
	d, id, err := a.deskOf(ctx, f.state, what, true)
	if err != nil {
		return nil, err
	}
	defer d.store.Close()
	return d.find(ctx, id)
}

// approvalText shows a request, and of each text in it at most so many bytes. What a model may have written is marked.
func (a *app) approvalText(w io.Writer, v *approvalView, most int) {
	plain := a.lines(w, "")
	line := func(name, value string) { plain(name, marked(value)) }
	c := &v.content
	plain("approval", v.ID)
	plain("stands", standing(v))
	plain("run", joined(", ", v.RunID+" of team "+v.Team, string(v.RunStatus)))
	if v.Author != "" {
		plain("author", v.Author+", by their own word")
	}
	line("asks", v.Scope+" at "+v.Boundary)
	line("task", c.TaskID)
	line("agent", joined(", role ", c.AgentName, c.Role))
	tool := c.ToolName
	if c.Consequential {
		tool = joined(", ", tool, "consequential")
	}
	line("tool", tool)
	if c.Again {
		plain("again", againText(v.Scope))
	}
	line("rules", strings.Join(c.Rules, ", "))
	line("reason", v.Reason)
	plain("asked", stamp(v.RequestedAt))
	plain("expires", stamp(v.Expires))
	plain("who", decidersOf(v))
	for _, vote := range v.Votes {
		plain("vote", vote.text())
	}
	a.shellText(w, v, most)
	a.subjectText(w, v, most)
	plain("plan", c.Plan)
	plain("hash", v.RequestHash)
	plain("content", shortened(string(v.Content), most))
	plain("marked", foreign(string(v.Content)))
}

func (a *app) shellText(w io.Writer, v *approvalView, most int) {
	if v.Shell == nil {
		return
	}
	line := a.lines(w, "")
	line("command", shortened(v.command, most))
	line("risk", v.Shell.Level+": "+marked(v.Shell.Reason))
	for _, f := range v.Shell.Findings {
		line(fmt.Sprintf("  %d:%d", f.Line, f.Column), marked(fmt.Sprintf("%-6s  %s: %s", f.Level, f.Code, f.Reason)))
	}
}

// stamp is a time. Empty: there is none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func standing(v *approvalView) string {
	text := v.Decision
	if v.Decision == spec.ApprovalPending {
		text += fmt.Sprintf(": %d of %s", v.Approvals, counted(v.Quorum, "approval"))
		if v.RunStatus == journal.StatusEnded {
			text += ", and the run has ended"
		}
		return text
	}
	if len(v.Votes) > 0 && !v.Authenticated {
		text += ", unauthenticated: nothing proves who decided"
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// decidersOf says who may decide, and how.
func decidersOf(v *approvalView) string {
	var who []string
	for _, r := range v.Reviewers {
		how := "by name alone"
		if r.KeyID != "" {
			how = "signed by " + r.KeyID
		}
		who = append(who, r.ID+" ("+how+")")
	}
	text := strings.Join(who, ", ")
	if who == nil {
		text = "anybody, by name alone"
	}
	if v.SeparateApprover {
		text += "; not the author, and signed only"
	}
	return text + "; " + counted(v.Quorum, "approval") + " needed, one rejection rejects"
}

func (v *voteView) text() string {
	how := "unsigned"
	if len(v.Signature) > 0 {
		how = "signed"
	}
	text := fmt.Sprintf("%s by %s, %s, %s", v.Verdict, v.Reviewer, v.DecidedAt.Format(time.RFC3339), how)
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	if !v.Counts {
		text += "\ndoes not count: " + v.Why
	}
	return text
}
