package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-multi-agent/oma/loader"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// events gives what sees each event once it is on record: the progress, and standard output under -o ndjson.
func (s *execution) events() func(*spec.Event) {
	if s.f.output != "ndjson" {
		return s.progress.event
	}
	return s.ndjson()
}

// ndjson writes events to standard output as they happen. The first line says the version, the last is a
// runResult.
func (s *execution) ndjson() func(*spec.Event) {
	out := json.NewEncoder(s.stdout)
	out.SetEscapeHTML(false)
	out.Encode(spec.Envelope{APIVersion: spec.APIVersion, Kind: "Events"})
	return func(e *spec.Event) {
		shown := *e
		shown.Data = s.redacted(e.Data)
		out.Encode(shown)
	}
}

// redacted takes secrets out of an event's data, leaf by leaf, so that it stays JSON.
func (s *execution) redacted(data json.RawMessage) json.RawMessage {
	if data == nil {
		return nil
	}
	v, err := canon.Decode(data)
	if err == nil {
		if b, err := canon.Bytes(s.wiring.redactor.Value(v)); err == nil {
			return b
		}
	}
	return json.RawMessage(`"withheld: the data cannot be redacted"`)
}

// finish prints the result of a run whose receipt is at path. broke is what could not be put in its place.
func (s *execution) finish(res *runtime.Result, path string, broke error) error {
	err := errors.Join(broke, s.writeCassette(), s.result(res))
	s.summary(res.Receipt)
	if s.f.explainDenials {
		d := denialsOf(res.Receipt)
		s.denialsText(s.stderr, &d)
	}
	if s.log != nil && !s.f.quiet {
		s.waiting(res.Receipt)
	}
	if !s.f.quiet && (path != "" || s.goesOn(res)) {
		fmt.Fprintln(s.stderr, "next: "+s.outside(s.wiring.redactor.Text(s.nextLine(res, path))))
	}
	if !s.f.quiet && path != "" {
		fmt.Fprintf(s.stderr, "receipt: %s\n", path)
	}
	if err != nil {
		return err
	}
	return ended(res.Receipt.ExitCodes[0])
}

// keep writes the receipt and says where it is. Where it was asked for it may no longer be possible to write: it then
// goes to the state folder, since what ran leaves evidence, and the run is broken all the same. An empty path: nowhere.
func (s *execution) keep(receipt []byte) (path string, err error) {
	if err = writeFile(s.receipt, receipt); err == nil {
		return s.receipt, nil
	}
	err = fmt.Errorf("the receipt cannot be written: %w", err)
	other := filepath.Join(s.folder, "receipt.json")
	if other == s.receipt || writeFile(other, receipt) != nil {
		return "", err
	}
	return other, fmt.Errorf("%w: it is %s instead", err, other)
}

func (s *execution) writeCassette() error {
	if s.wiring.recorder == nil {
		return nil
	}
	b, err := loader.MarshalCassette(s.wiring.recorder.Cassette(s.c.plan.Team.Name))
	if err != nil {
		return err
	}
	return writeFile(s.f.record, b)
}

// runResult is the last line of -o ndjson, of kind Result: the receipt, and the answers it vouches for. -o json and yaml
// print the receipt alone.
type runResult struct {
	spec.Envelope
	Receipt *spec.Receipt    `json:"receipt"`
	Outputs []runtime.Output `json:"outputs"`
}

func (s *execution) result(res *runtime.Result) error {
	if s.f.output == "ndjson" {
		return json.NewEncoder(s.stdout).Encode(runResult{spec.Envelope{APIVersion: spec.APIVersion, Kind: "Result"}, res.Receipt, res.Outputs})
	}
	if s.f.output != "text" {
		return s.print(s.f.output, json.RawMessage(res.Bytes), nil)
	}
	for _, o := range res.Outputs {
		if o.Text == "" {
			continue
		}
		if len(res.Outputs) > 1 {
			fmt.Fprintf(s.stdout, "## %s\n", o.Agent)
		}
		fmt.Fprintln(s.stdout, s.outside(strings.TrimSuffix(o.Text, "\n")))
	}
	return nil
}

// summary tells a person how it went, on standard error.
func (s *execution) summary(r *spec.Receipt) {
	if s.f.quiet {
		return
	}
	cost := "cost unknown"
	if r.Cost != nil {
		cost = "$" + r.Cost.String()
	}
	if code := r.ExitCodes[0]; code != runtime.ExitOK {
		fmt.Fprintf(s.stderr, "exit %d: %s\n", code, meaning(code))
	}
	estimated := slices.ContainsFunc(r.Tasks, func(t spec.TaskRecord) bool { return t.Estimated })
	fmt.Fprintf(s.stderr, "%s  %s  %s  %s  %d denied\n", r.Status.Code, tokensText(r.TotalTokens.Total(), estimated), cost,
		time.Duration(r.DurationMs)*time.Millisecond, r.Denied)
	said := s.progress.causes
	if m := r.Status.Message; m != "" && !slices.Contains(said, m) {
		said = append(said, m)
		fmt.Fprintf(s.stderr, "  %s\n", s.outside(m))
	}
	fmt.Fprintf(s.stderr, "governanceConclusion: %s\n", r.GovernanceConclusion)
	for _, d := range r.GovernanceDetail {
		line := string(d.Code)
		if !slices.Contains(said, d.Message) {
			line += ": " + s.outside(d.Message)
		}
		fmt.Fprintf(s.stderr, "  %s\n", line)
	}
	s.releaseSummary(r)
	if len(r.Flags) > 0 {
		fmt.Fprintf(s.stderr, "flags: %s\n", strings.Join(r.Flags, ", "))
	}
}

func (s *execution) releaseSummary(r *spec.Receipt) {
	if r.ReleaseConclusion != spec.NotApplicable {
		fmt.Fprintf(s.stderr, "releaseConclusion: %s\n", r.ReleaseConclusion)
	}
	for _, q := range r.Release {
		if q.Outcome != "held" {
			fmt.Fprintf(s.stderr, "  %s %s: %s\n", q.Name, q.Outcome, s.outside(q.Reason))
		}
	}
}
