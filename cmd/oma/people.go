package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	if rec.Decision == spec.ApprovalPending && action == spec.ActionAsk && p.present(m) {
		rec, err = p.here(ctx, m)
	}
	if err == nil && rec.Decision == spec.ApprovalPending && !m.kept {
		err = runtime.ErrCannotSuspend
	}
	return rec, err
}

// Here is runtime.Approver: whoever sits at the terminal is asked, and the store knows nothing of it.
func (p *people) Here(ctx context.Context, r spec.ApprovalRequest) (spec.ApprovalRecord, error) {
	m := p.matter(&journal.Approval{ApprovalRequest: r})
	if !p.present(m) {
		return spec.ApprovalRecord{}, runtime.ErrNobodyHere
	}
	return p.here(ctx, m)
}

// matter is a request as it is shown and decided here.
func (p *people) matter(a *journal.Approval) *matter {
	m := &matter{levels: levelsOf(p.c.plan)}
	m.ApprovalRequest, m.Votes = a.ApprovalRequest, a.Decisions
	m.Team, m.Author, m.Approvals = p.c.plan.Team.Name, p.author, p.c.plan.Approvals
	return m
}

// How long a question may be that is asked here. It is shown whole or not at all, and somebody must be able to scroll back
// to where it begins.
const (
	askedBytes = 256 << 10
	askedLines = 4000
)

// here asks whoever sits at the terminal. It stays pending where they are not asked, or do not answer.
func (p *people) here(ctx context.Context, m *matter) (spec.ApprovalRecord, error) {
	var text bytes.Buffer
	p.approvalText(&text, m.view(p.now()), noLimit)
	if text.Len() > askedBytes || bytes.Count(text.Bytes(), []byte("\n")) > askedLines {
		p.progress.announce(fmt.Sprintf("what is asked is more than can be shown here: over %d KiB or %d lines", askedBytes>>10, askedLines))
		return m.record(p.now()), nil
	}
	vote, err := p.question(ctx, text.String())
	switch {
	case err != nil && !m.kept:
		return m.record(p.now()), fmt.Errorf("nobody answered: %w", err)
	case err != nil: // whoever sits there did not answer: it waits, like where nobody does
		return m.record(p.now()), nil
	}
	return p.take(ctx, m, vote)
}

// put leaves a request in the store, and gives it as it was first asked, with what was said since.
func (p *people) put(ctx context.Context, r spec.ApprovalRequest) (*matter, error) {
	found := journal.Approval{ApprovalRequest: r}
	if p.store != nil {
		err := p.store.Ask(ctx, r)
		if err == nil {
			found, err = p.store.Approval(ctx, r.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("the request cannot be kept: %w", err)
		}
		if !found.RequestedAt.Equal(r.RequestedAt) || !found.Expires.Equal(r.Expires) {
			return nil, fmt.Errorf("request %s is kept with times that are not those of the log", r.ID)
		}
	}
	m := p.matter(&found)
	m.kept = p.store != nil
	return m, nil
}

// present says that somebody sits at the terminal whose word would count.
func (p *people) present(m *matter) bool {
	return p.asks && p.size != nil && !p.f.noInput && p.getenv("CI") == "" && p.heard(m)
}

// heard says that what the sitter says would count, as it would not a second time, and where nothing is kept that it would
// be enough: no other one could say more.
func (p *people) heard(m *matter) bool {
	now, with := p.now(), *m
	with.Votes = append(slices.Clip(m.Votes), spec.ApprovalVote{Verdict: spec.VerdictApprove, Reviewer: p.sitter(), DecidedAt: now})
	before, after := m.record(now), with.record(now)
	return len(after.Votes) > len(before.Votes) && (m.kept || after.Decision != spec.ApprovalPending)
}

// take records an answer that was given here, unless somebody else was first.
func (p *people) take(ctx context.Context, m *matter, vote spec.ApprovalVote) (spec.ApprovalRecord, error) {
	vote.DecidedAt = p.now().UTC().Truncate(time.Millisecond)
	if !m.kept {
		m.Votes = append(m.Votes, vote)
		return m.record(p.now()), nil
	}
	late := p.store.Decide(ctx, m.ID, m.RequestHash, vote, m.concludes(p.now))
	switch {
	case errors.Is(late, journal.ApprovalConflict), errors.Is(late, journal.ApprovalStale): // it names who was first
		p.progress.announce("what you said does not count: " + late.Error())
	case late != nil:
		return spec.ApprovalRecord{}, fmt.Errorf("the decision cannot be kept: %w", late)
	}
	found, err := p.store.Approval(ctx, m.ID)
	if err != nil {
		return spec.ApprovalRecord{}, err
	}
	m.Votes = found.Decisions
	rec := m.record(p.now())
	if late == nil && rec.Decision == spec.ApprovalPending {
		p.progress.announce(fmt.Sprintf("that is %d of %s", approving(&rec), counted(needed(m.Approvals), "approval")))
	}
	return rec, nil
}

var errNoAnswer = errors.New("the terminal was closed, or the run told to stop")

// question asks whoever sits at the terminal. What is not y is a refusal, and its reason.
func (p *people) question(ctx context.Context, text string) (spec.ApprovalVote, error) {
	who := p.sitter()
	p.progress.hold(text)
	defer p.progress.release()
	if p.typed == nil {
		p.typed = &typed{in: bufio.NewReader(p.stdin), lines: make(chan string, 1)}
	}
	p.typed.forget()
	if p.discard != nil {
		p.discard()
	}
	if n, rows := p.tall(text); n >= rows {
		fmt.Fprintf(p.stderr, "%d lines are above, more than the screen has: scroll up to where they begin\n", n)
	}
	for {
		fmt.Fprintf(p.stderr, "Run exactly this, as %s? y, n, or why not: ", escape(who))
		line, err := p.line(ctx)
		if err != nil {
			fmt.Fprintln(p.stderr)
			return spec.ApprovalVote{}, err
		}
		vote := spec.ApprovalVote{Verdict: spec.VerdictReject, Reviewer: who}
		switch strings.ToLower(line) {
		case "":
		case "y", "yes":
			vote.Verdict = spec.VerdictApprove
			return vote, nil
		case "n", "no":
			return vote, nil
		default:
			vote.Reason = strings.ToValidUTF8(line, "\ufffd")
			err := sound(&vote)
			if err == nil {
				return vote, nil
			}
			fmt.Fprintf(p.stderr, "%v, and nothing is decided\n", err)
		}
	}
}

// tall says how many lines a text takes here, and how many the screen has.
func (p *people) tall(text string) (n, rows int) {
	cols, rows := p.size()
	for line := range strings.Lines(text) {
		n += 1 + (utf8.RuneCountInString(line)-1)/max(cols, 1)
	}
	return n, rows
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
