package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
)

// people puts what a run asks before people: in the store, where another process finds it, and before whoever sits at the
// terminal.
type people struct {
	*execution
	drain <-chan struct{} // when closed, nobody is asked here any more

	typed *typed // nil: nothing was asked yet
}

// Ask is runtime.Approver.
func (p *people) Ask(ctx context.Context, r spec.ApprovalRequest, action string) (spec.ApprovalRecord, error) {
	m, err := p.put(ctx, r)
	if err != nil {
		return spec.ApprovalRecord{}, err
	}
	rec := m.record(p.now())
	if rec.Decision != spec.ApprovalPending || action != spec.ActionAsk || !p.present(m) {
		if rec.Decision == spec.ApprovalPending && p.store == nil {
			return rec, runtime.ErrCannotSuspend
		}
		return rec, nil
	}
	vote, err := p.question(ctx, m)
	switch {
	case err != nil && p.store == nil:
		return rec, fmt.Errorf("nobody answered: %w", err)
	case err != nil: // whoever sits there did not answer: it waits, like where nobody does
		return rec, nil
	}
	return p.take(ctx, m, vote)
}

// put leaves a request in the store, and gives it as it was first asked, with what was said since.
func (p *people) put(ctx context.Context, r spec.ApprovalRequest) (*matter, error) {
	r.RequestedAt = p.now().UTC().Truncate(time.Millisecond)
	if a := p.c.plan.Approvals; a != nil && a.Expires > 0 {
		r.Expires = r.RequestedAt.Add(time.Duration(a.Expires)).Truncate(time.Millisecond)
	}
	found := journal.Approval{ApprovalRequest: r}
	if p.store != nil {
		err := p.store.Ask(ctx, r)
		if err == nil {
			found, err = p.store.Approval(ctx, r.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("the request cannot be kept: %w", err)
		}
	}
	m := &matter{levels: levelsOf(p.c.plan)}
	m.ApprovalRequest, m.Votes = found.ApprovalRequest, found.Decisions
	m.Team, m.Author, m.Approvals = p.c.plan.Team.Name, p.author, p.c.plan.Approvals
	return m, nil
}

// present says that somebody sits at the terminal whose word would count.
func (p *people) present(m *matter) bool {
	vote := spec.ApprovalVote{Verdict: spec.VerdictApprove, Reviewer: p.sitter()}
	return p.asks && p.size != nil && !p.f.noInput && p.getenv("CI") == "" && policies.VoteRefused(m.Approvals, m.Author, &m.ApprovalRequest, &vote) == nil
}

// take records an answer that was given here, unless somebody else was first.
func (p *people) take(ctx context.Context, m *matter, vote spec.ApprovalVote) (spec.ApprovalRecord, error) {
	vote.DecidedAt = p.now().UTC().Truncate(time.Millisecond)
	if p.store == nil {
		m.Votes = append(m.Votes, vote)
		return m.record(p.now()), nil
	}
	err := p.store.Decide(ctx, m.ID, m.RequestHash, vote, func(a *journal.Approval) bool {
		return policies.ConcludeApproval(m.Approvals, m.Author, &a.ApprovalRequest, a.Decisions, p.now()).Decision != spec.ApprovalPending
	})
	if err != nil && !errors.Is(err, journal.ApprovalConflict) && !errors.Is(err, journal.ApprovalStale) {
		return spec.ApprovalRecord{}, fmt.Errorf("the decision cannot be kept: %w", err)
	}
	found, err := p.store.Approval(ctx, m.ID)
	if err != nil {
		return spec.ApprovalRecord{}, err
	}
	m.Votes = found.Decisions
	return m.record(p.now()), nil
}

var errNoAnswer = errors.New("the terminal was closed, or the run told to stop")

// question asks whoever sits at the terminal. What is not y is a refusal, and its reason.
func (p *people) question(ctx context.Context, m *matter) (spec.ApprovalVote, error) {
	vote := spec.ApprovalVote{Reviewer: p.sitter()}
	var text bytes.Buffer
	p.approvalText(&text, m.view(p.now()))
	p.progress.hold(text.String())
	defer p.progress.release()
	if p.typed == nil {
		p.typed = &typed{in: bufio.NewReader(p.stdin), lines: make(chan string, 1)}
	}
	p.typed.forget()
	if p.discard != nil {
		p.discard()
	}
	for {
		fmt.Fprintf(p.stderr, "Run exactly this, as %s? y, n, or why not: ", escape(vote.Reviewer))
		line, err := p.line(ctx)
		if err != nil {
			fmt.Fprintln(p.stderr)
			return vote, err
		}
		switch strings.ToLower(line) {
		case "":
		case "y", "yes":
			vote.Verdict = spec.VerdictApprove
			return vote, nil
		case "n", "no":
			vote.Verdict = spec.VerdictReject
			return vote, nil
		default:
			vote.Verdict, vote.Reason = spec.VerdictReject, line
			return vote, nil
		}
	}
}

// line waits for a line that is typed after it was asked for.
func (p *people) line(ctx context.Context) (string, error) {
	select {
	case line, open := <-p.typed.next():
		p.typed.reading = false
		if !open {
			return "", errNoAnswer
		}
		return strings.TrimSpace(line), nil
	case <-p.drain:
		return "", errNoAnswer
	case <-ctx.Done():
		return "", errNoAnswer
	}
}

// typed is what somebody types. A read from a terminal cannot be taken back, so one that was begun serves who asks next.
type typed struct {
	in      *bufio.Reader
	lines   chan string // closed at the end of the input
	reading bool        // a line was asked for and not taken yet
}

func (t *typed) next() <-chan string {
	if !t.reading {
		t.reading = true
		go func() {
			line, err := t.in.ReadString('\n')
			if err != nil {
				close(t.lines)
				return
			}
			t.lines <- line
		}()
	}
	return t.lines
}

// forget drops what was typed before a question was to be seen: nobody meant it as an answer.
func (t *typed) forget() {
	select {
	case _, open := <-t.lines:
		t.reading = !open
	default:
	}
	if !t.reading { // else the buffer is the reader's, and it holds no whole line
		t.in.Discard(t.in.Buffered())
	}
}

// maxAuthor bounds an author's name, in bytes.
const maxAuthor = 200

// starter is whoever starts a run, by their own word. In a CI job the user's name says nothing of who that is, so there
// nobody is, unless it was said.
func (a *app) starter(given string, approvals *spec.PlanApprovals) (string, error) {
	name := strings.TrimSpace(cmp.Or(given, a.getenv("OMA_AUTHOR")))
	if name == "" && a.getenv("CI") == "" {
		name = a.login()
	}
	switch {
	case len(name) > maxAuthor || escape(name) != name:
		return "", usage("%s is no author: expected a name of at most %d bytes that can all be seen", escape(name[:min(len(name), maxAuthor)]), maxAuthor)
	case name == "" && approvals != nil && approvals.SeparateApprover:
		return "", usage("approvals.separateApprover wants somebody other than who starts the run, and nobody says who that is: give --author or OMA_AUTHOR")
	}
	return name, nil
}

// sitter is whoever sits here, by their own word.
func (a *app) sitter() string {
	if id := strings.TrimSpace(a.getenv("OMA_REVIEWER")); id != "" {
		return id
	}
	return a.login()
}

// login is the name of the user that the program runs as. Empty: it has none.
func login() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
