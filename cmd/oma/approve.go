package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

// decideCommand is approve or reject.
func (a *app) decideCommand(verdict, short, after string) *cobra.Command {
	var f approvalFlags
	cmd := &cobra.Command{
		Use:   verdict + " ID|FILE",
		Short: short,
		Long: after + "\n\nWith the file of a request in place of an id nothing is kept here: a decision is written, which oma approvals import\n" +
			"takes where the run is. A decision that could not count is refused, and so is one about what was decided or has expired.",
		Args: argsExactly(1, "one request"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			return a.decide(cmd.Context(), args[0], verdict, &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.reviewer, "reviewer", "", "who decides (OMA_REVIEWER; where anybody may: the name of the user)")
	fl.StringVar(&f.reason, "reason", "", "why, for the run, the model and the receipt")
	fl.StringVar(&f.key, "key", "", "the reviewer's private key, Ed25519 or ECDSA P-256, PKCS #8 in PEM; - reads standard input")
	fl.StringVar(&f.hash, "hash", "", "decide only if the request has this hash, as approvals show has it")
	fl.StringVar(&f.out, "out", "", "with FILE: where the decision goes (default: standard output)")
	fl.StringVar(&f.state, "state", "", "the folder runs are kept in (OMA_STATE)")
	fl.StringVarP(&f.output, "output", "o", "text", "text, json or yaml")
	return cmd
}

func (a *app) approveCommand() *cobra.Command {
	return a.decideCommand(spec.VerdictApprove, "Approve what a run asks", "Approve lets a call run exactly as approvals show shows it, or a plan or a task start.")
}

func (a *app) rejectCommand() *cobra.Command {
	return a.decideCommand(spec.VerdictReject, "Reject what a run asks", "Reject keeps a call from running, which the model is told. A plan or a task that is rejected ends the run for good.")
}

func (a *app) decide(ctx context.Context, what, verdict string, f *approvalFlags) error {
	if err := f.printable(); err != nil {
		return err
	}
	for _, flag := range []struct{ name, value string }{{"key", f.key}, {"hash", f.hash}, {"out", f.out}, {"state", f.state}} {
		if f.changed(flag.name) && flag.value == "" { // as from a variable that is not set
			return usage("--%s is empty", flag.name)
		}
	}
	if isFile(what) {
		return a.decideFile(what, verdict, f)
	}
	if f.out != "" {
		return usage("--out belongs to the file of a request: a decision about %s is kept in the store", what)
	}
	d, id, err := a.deskOf(ctx, f.state, what, false)
	if err != nil {
		return err
	}
	defer d.store.Close()
	m, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	v, err := a.vote(m, verdict, f)
	if err != nil {
		return err
	}
	return d.take(ctx, m, v, f)
}

// take stores a decision and says what came of the request.
func (d *desk) take(ctx context.Context, m *matter, v *spec.ApprovalVote, f *approvalFlags) error {
	if err := d.store.Decide(ctx, m.ID, m.RequestHash, *v, m.concludes(d.now)); err != nil {
		return approvalError(err)
	}
	return d.told(ctx, m, f)
}

// told says what came of a request, and what to type next.
func (d *desk) told(ctx context.Context, m *matter, f *approvalFlags) error {
	m, err := d.find(ctx, m.ID)
	if err != nil {
		return err
	}
	v := m.view(d.now())
	err = d.print(f.output, v, func(w io.Writer) { fmt.Fprintln(w, d.outside(v.ID+"  "+standing(v))) })
	switch {
	case err != nil:
		return err
	case v.Decision != spec.ApprovalPending:
		d.next(f.line("resume", v.RunID))
	case len(v.Reviewers) > 0:
		d.say("still to decide: %s", strings.Join(ids(undecided(v)), ", "))
	}
	return nil
}

// undecided are the reviewers whose decision would count.
func undecided(v *approvalView) (who []reviewerView) {
	said := map[string]bool{}
	for _, vote := range v.Votes {
		said[vote.Reviewer] = said[vote.Reviewer] || vote.Counts
	}
	for _, r := range v.Reviewers {
		if !said[r.ID] && !(v.SeparateApprover && (r.ID == v.Author || r.KeyID == "")) {
			who = append(who, r)
		}
	}
	return who
}

func ids(who []reviewerView) (out []string) {
	for _, r := range who {
		out = append(out, r.ID)
	}
	return out
}

// vote makes a decision about a request, which counts as far as can be told here.
func (a *app) vote(m *matter, verdict string, f *approvalFlags) (*spec.ApprovalVote, error) {
	if f.hash != "" && f.hash != m.RequestHash {
		return nil, approvalError(&journal.ApprovalError{Code: journal.ApprovalStale, ID: m.ID,
			Detail: fmt.Sprintf("is of request %s, and you looked at %q: look again with oma approvals show", m.RequestHash, f.hash)})
	}
	if err := m.closed(a.now()); err != nil {
		return nil, approvalError(err)
	}
	who, err := a.reviewer(m, f)
	if err != nil {
		return nil, err
	}
	v := &spec.ApprovalVote{Verdict: verdict, Reviewer: who, Reason: f.reason}
	if err := sound(v); err != nil {
		return nil, usage("%v", err)
	}
	var key *keys.Private
	if f.key != "" {
		if key, err = a.sign(m, v, f.key); err != nil {
			return nil, err
		}
	}
	if err := policies.VoteRefused(m.Approvals, m.Author, &m.ApprovalRequest, v); err != nil {
		return nil, usage("the decision would not count: %s", joined("; ", err.Error(), m.remedy(v, key)))
	}
	return v, nil
}

func (a *app) sign(m *matter, v *spec.ApprovalVote, path string) (*keys.Private, error) {
	if who := m.declared(v.Reviewer); m.Approvals == nil || who != nil && who.PublicKey == "" {
		return nil, usage("the team has no key of %q that a signature could be held against: leave --key out", v.Reviewer)
	}
	key, err := a.privateKey(path)
	if err != nil {
		return nil, err
	}
	text, err := policies.ApprovalText(&m.ApprovalRequest, v)
	if err == nil {
		v.Signature, err = key.Sign(context.Background(), text)
	}
	return key, err
}

// closed says why nobody can decide about a request any more, or nil.
func (m *matter) closed(now time.Time) error {
	rec := m.record(now)
	e := &journal.ApprovalError{Code: journal.ApprovalStale, ID: m.ID}
	switch {
	case rec.Decision == spec.ApprovalExpired:
		e.Detail = "expired at " + m.Expires.Format(time.RFC3339)
	case rec.Decision != spec.ApprovalPending:
		last := rec.Votes[len(rec.Votes)-1]
		e.Code, e.Detail = journal.ApprovalConflict, fmt.Sprintf("was decided already: %s, at last by %q", rec.Decision, last.Reviewer)
	case m.status == journal.StatusEnded:
		e.Detail = fmt.Sprintf("is of run %s, which has ended", m.RunID)
	default:
		return nil
	}
	return e
}

// reviewer says who decides.
func (a *app) reviewer(m *matter, f *approvalFlags) (string, error) {
	if f.changed("reviewer") {
		return strings.TrimSpace(f.reviewer), nil // empty: it is refused like any name that is none
	}
	if who := strings.TrimSpace(a.getenv("OMA_REVIEWER")); who != "" {
		return who, nil
	}
	if m.Approvals != nil && len(m.Approvals.Reviewers) > 0 {
		return "", usage("say who decides with --reviewer ID: %s", strings.Join(m.reviewers(), ", "))
	}
	if who := a.login(); who != "" {
		return who, nil
	}
	return "", usage("say who decides with --reviewer ID: the system has no name for you")
}

func (m *matter) reviewers() (ids []string) {
	for _, r := range m.Approvals.Reviewers {
		ids = append(ids, r.ID)
	}
	return ids
}

// declared gives a reviewer of the team. nil: there is none of that name.
func (m *matter) declared(id string) *spec.Reviewer {
	for i := 0; m.Approvals != nil && i < len(m.Approvals.Reviewers); i++ {
		if r := &m.Approvals.Reviewers[i]; r.ID == id {
			return r
		}
	}
	return nil
}

// remedy says what would make a refused decision count. Empty: nothing would.
func (m *matter) remedy(v *spec.ApprovalVote, key *keys.Private) string {
	if v.Reviewer == "" || m.Approvals == nil {
		return "say who decides with --reviewer ID"
	}
	who := m.declared(v.Reviewer)
	switch {
	case who == nil && len(m.Approvals.Reviewers) > 0:
		return spec.DidYouMean(v.Reviewer, m.reviewers())
	case who == nil || m.Approvals.SeparateApprover && v.Reviewer == m.Author:
		return ""
	case who.PublicKey == "":
		return "the team must declare the key in approvals.reviewers"
	case len(v.Signature) == 0:
		return "sign it with --key FILE, the private half of " + keyID(who.PublicKey)
	case key != nil:
		return fmt.Sprintf("--key is of %s, and theirs is %s", key.ID(), keyID(who.PublicKey))
	}
	return ""
}

// maxReasonBytes bounds what a reviewer says: it goes to the model and into the receipt.
const maxReasonBytes = 16 << 10

// sound refuses what could not be stored or shown as it was written.
func sound(v *spec.ApprovalVote) error {
	switch {
	case !utf8.ValidString(v.Reviewer + v.Reason):
		return fmt.Errorf("reviewer and reason must be UTF-8")
	case len(v.Reviewer) > 256:
		return fmt.Errorf("the reviewer's name is longer than 256 bytes")
	case len(v.Reason) > maxReasonBytes:
		return fmt.Errorf("the reason is longer than %d KiB", maxReasonBytes>>10)
	}
	return nil
}

// saidAlready says that a decision is stored already, and counts.
func (m *matter) saidAlready(v *spec.ApprovalVote, now time.Time) bool {
	return slices.ContainsFunc(m.record(now).Votes, func(said spec.ApprovalVote) bool { return sameVote(&said, v) })
}
