package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/runtime/journal"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// isFile says that an argument is a file, or standard input, and no id.
func isFile(what string) bool {
	return what == "-" || strings.HasSuffix(what, ".json") || strings.ContainsAny(what, `/\`)
}

// readDocument reads a document of one kind into to. What this version does not know is refused: a reviewer would not see it.
func readDocument(b []byte, kind string, to any) error {
	var head spec.Envelope
	if err := canon.Check(b); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return errors.New("it is no document")
	}
	if head.APIVersion != spec.APIVersion || head.Kind != kind {
		return fmt.Errorf("it is a %q of %q, not a %s of %s", head.Kind, head.APIVersion, kind, spec.APIVersion)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return plainJSON(d.Decode(to))
}

// plainJSON says what is wrong with a document without naming types of Go.
func plainJSON(err error) error {
	var typed *json.UnmarshalTypeError
	var bad *time.ParseError
	switch {
	case errors.As(err, &typed):
		return fmt.Errorf("%s: a %s does not belong there", typed.Field, typed.Value)
	case errors.As(err, &bad):
		return fmt.Errorf("%s is no time", bad.Value)
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// readRequest reads the file of a request, which must be what its hash and its id say.
func readRequest(b []byte) (*spec.ApprovalRequestFile, error) {
	var r spec.ApprovalRequestFile
	if err := readDocument(b, spec.KindApprovalRequest, &r); err != nil {
		return nil, err
	}
	if err := policies.CheckApproval(&r.ApprovalRequest); err != nil {
		return nil, err
	}
	c, err := canon.Canonical(r.Content)
	r.Content = c // the one form, in which it will be shown
	return &r, err
}

// readDecision reads the file of a decision.
func readDecision(b []byte) (*spec.ApprovalDecisionFile, error) {
	var d spec.ApprovalDecisionFile
	if err := readDocument(b, spec.KindApprovalDecision, &d); err != nil {
		return nil, err
	}
	if d.RequestID == "" || d.RunID == "" || d.RequestHash == "" {
		return nil, errors.New("requestId, runId and requestHash must be there")
	}
	return &d, sound(&d.ApprovalVote)
}

// requestFile reads a request on its way to a reviewer.
func (a *app) requestFile(path string, f *approvalFlags) (*matter, error) {
	if f.state != "" {
		return nil, usage("--state belongs to an id: the file of a request needs no store")
	}
	b, err := a.readInput(path)
	if err != nil {
		return nil, usage("%s cannot be read: %v", path, cause(err))
	}
	r, err := readRequest(b)
	if err != nil {
		return nil, usage("%s is no request that can be decided: %v", path, err)
	}
	return &matter{ApprovalRequestFile: *r}, nil
}

func (a *app) approvalsExport(ctx context.Context, what string, f *approvalFlags) error {
	d, id, err := a.deskOf(ctx, f.state, what, true)
	if err != nil {
		return err
	}
	defer d.store.Close()
	m, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	if err := m.closed(a.now()); err != nil {
		return approvalError(err)
	}
	if err := a.put(f.out, m.ApprovalRequestFile); err != nil || f.out == "" {
		return err
	}
	a.next(shellLine([]string{"oma", "approvals", "show", f.out}) + "   where the reviewer is")
	return nil
}

// put writes a document to a file, or to standard output.
func (a *app) put(path string, doc any) error {
	var b bytes.Buffer
	text := json.NewEncoder(&b)
	text.SetIndent("", "  ")
	text.SetEscapeHTML(false) // a person may read the file, and > is common in a command
	if err := text.Encode(doc); err != nil {
		return err
	}
	if path == "" {
		_, err := a.stdout.Write(b.Bytes())
		return err
	}
	if err := writeFile(path, b.Bytes()); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, cause(err))
	}
	return nil
}

// decideFile writes a decision about a request that came as a file. What the file says of reviewers helps to see early that
// a decision could not count, and nothing more.
func (a *app) decideFile(path, verdict string, f *approvalFlags) error {
	if path == "-" && f.key == "-" {
		return usage("the request and the key cannot both come from standard input")
	}
	if same := sameFile(f.out, path, f.key); same != "" {
		return usage("--out %s would replace %s", f.out, same)
	}
	m, err := a.requestFile(path, f)
	if err != nil {
		return err
	}
	v, err := a.vote(m, verdict, f)
	if err != nil {
		return err
	}
	v.DecidedAt = a.now().UTC().Truncate(time.Millisecond)
	doc := spec.ApprovalDecisionFile{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindApprovalDecision},
		RequestID: m.ID, RunID: m.RunID, RequestHash: m.RequestHash, Expires: m.Expires, ApprovalVote: *v}
	if err := a.put(f.out, doc); err != nil {
		return err
	}
	a.next(shellLine([]string{"oma", "approvals", "import", filepath.Base(cmp.Or(f.out, "DECISION"))}) + "   where the run is kept")
	return nil
}

func (a *app) approvalsImport(ctx context.Context, path string, f *approvalFlags) error {
	if err := f.printable(); err != nil {
		return err
	}
	b, err := a.readInput(path)
	if err != nil {
		return usage("%s cannot be read: %v", path, cause(err))
	}
	file, err := readDecision(b)
	if err != nil {
		return usage("%s is no decision that can be taken: %v", path, err)
	}
	d, id, err := a.deskOf(ctx, f.state, file.RequestID, false)
	if err != nil {
		return err
	}
	defer d.store.Close()
	m, err := d.find(ctx, id)
	if err != nil {
		return err
	}
	if m.ID != file.RequestID || m.RunID != file.RunID || m.RequestHash != file.RequestHash || !m.Expires.Equal(file.Expires) {
		return approvalError(&journal.ApprovalError{Code: journal.ApprovalStale, ID: m.ID, Detail: "was decided as another request than the one that is kept here"})
	}
	v := file.ApprovalVote
	v.DecidedAt = time.Time{} // it is taken now: when it was made is not signed, and an expiry must not hang on it
	if m.saidAlready(&v, a.now()) {
		return d.told(ctx, m, f)
	}
	if err := m.closed(a.now()); err != nil {
		return approvalError(err)
	}
	if err := policies.VoteRefused(m.Approvals, m.Author, &m.ApprovalRequest, &v); err != nil {
		return usage("the decision does not count: %s", joined("; ", err.Error(), m.remedy(&v, nil)))
	}
	return d.take(ctx, m, &v, f)
}
