package report

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

type testSuites struct {
	XMLName xml.Name  `xml:"testsuites"`
	Suite   testSuite `xml:"testsuite"`
}

type testSuite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr"` // seconds
	Properties []property `xml:"properties>property"`
	Cases      []testCase `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Time    string   `xml:"time,attr"`
	Failure *failure `xml:"failure"` // nil: it did not fail
	Skipped *skipped `xml:"skipped"` // nil: it was not skipped
}

type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

// junit gives every check a test case. Every reason of the verdict lets one of them fail, and none fails in a verdict that
// passes, so what reads the XML comes to the gate's decision.
func junit(v *runtime.GateVerdict) ([]byte, error) {
	s := testSuite{Name: "oma gate", Time: seconds(0), Properties: []property{
		{"integrity", line(v.Integrity, 64)}, {"bound", fmt.Sprint(v.Bound)},
		{"governanceConclusion", line(v.GovernanceConclusion, 64)}, {"releaseConclusion", line(v.ReleaseConclusion, 64)},
	}}
	if v.SignedBy != "" {
		s.Properties = append(s.Properties, property{"signedBy", line(v.SignedBy, 128)})
	}
	if v.Receipt != nil {
		s.Time = seconds(v.Receipt.DurationMs)
	}
	s.integrity(v)
	s.bound(v)
	s.conclusion("governance", v.GovernanceConclusion, reasons(v, governs))
	s.roles(v.Receipt)
	s.conclusion("release", v.ReleaseConclusion, reasons(v, isCode("release")))
	s.requirements(v)
	s.run(v)
	raw, err := xml.MarshalIndent(testSuites{Suite: s}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the verdict cannot be written as XML: %w", err)
	}
	return []byte(xml.Header + string(raw) + "\n"), nil
}

// governs says whether a reason is about the declaration, and not about the evidence, the release requirements or the
// run's own outcome.
func governs(code string) bool {
	return code != "integrity" && !unbound(code) && code != "release" && code != "run-failed"
}

// unbound says that a reason is about the yardstick.
func unbound(code string) bool { return code == "unbound" || code == "policy-missing" }

func seconds(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }

// add gives the case of one check, passed.
func (s *testSuite) add(name string, ms int64) *testCase {
	s.Cases = append(s.Cases, testCase{Class: "oma.gate", Name: line(name, 256), Time: seconds(ms)})
	s.Tests++
	return &s.Cases[len(s.Cases)-1]
}

// fail lets a check fail. There is at least one reason; the first is the weightiest.
func (s *testSuite) fail(c *testCase, why ...runtime.GateReason) {
	s.Failures++
	lines := make([]string, len(why))
	for i, r := range why {
		lines[i] = line(r.Code+": "+r.Message, 1024)
	}
	lines = append(lines, "next: "+advice(why[0]))
	c.Failure = &failure{line(why[0].Message, 1024), line(why[0].Code, 64), strings.Join(lines, "\n")}
}

func (s *testSuite) skip(c *testCase, message string) {
	s.Skipped++
	c.Skipped = &skipped{line(message, 1024)}
}

func (s *testSuite) run(v *runtime.GateVerdict) {
	if v.Receipt == nil {
		s.skip(s.add("run", 0), "there is no receipt that can be read")
		return
	}
	c := s.add("run", v.Receipt.DurationMs)
	if why := reasons(v, isCode("run-failed")); len(why) > 0 {
		s.fail(c, why...)
	}
}

func (s *testSuite) integrity(v *runtime.GateVerdict) {
	c := s.add("integrity", 0)
	switch why := reasons(v, isCode("integrity")); {
	case len(why) > 0:
		s.fail(c, why...)
	case !slices.Contains([]string{runtime.IntegrityDigest, runtime.IntegrityChain, runtime.IntegritySigned}, v.Integrity):
		s.fail(c, runtime.GateReason{Code: "integrity", Message: integrity(v)})
	}
}

func (s *testSuite) bound(v *runtime.GateVerdict) {
	c := s.add("bound", 0)
	switch why := reasons(v, unbound); {
	case len(why) > 0:
		s.fail(c, why...)
	case !v.Bound:
		s.skip(c, bound(v))
	}
}

func (s *testSuite) conclusion(name, conclusion string, why []runtime.GateReason) {
	c := s.add(name, 0)
	switch {
	case len(why) > 0:
		s.fail(c, why...)
	case conclusion == spec.NotApplicable:
		s.skip(c, "nothing is required")
	case conclusion != spec.Satisfied:
		s.fail(c, runtime.GateReason{Code: name, Message: "the conclusion is " + conclusion})
	}
}

func (s *testSuite) roles(r *spec.Receipt) {
	if r == nil || r.Governance == nil {
		return
	}
	g := r.Governance
	for i, role := range g.RequiredRoles {
		if slices.Contains(g.RequiredRoles[:i], role) {
			continue
		}
		c := s.add("role "+role, spentBy(r, role))
		switch {
		case slices.Contains(r.RolesExecuted, role):
		case g.GovernanceIntent != spec.IntentRequired:
			s.skip(c, "it did not complete a task and is preferred, not required")
		case slices.Contains(r.RolesFailed, role):
			s.fail(c, runtime.GateReason{Code: "role-failed", Message: "it did not complete its task" + ended(r, role)})
		default:
			s.fail(c, runtime.GateReason{Code: "role-missing", Message: "it did not run"})
		}
	}
}

// spentBy gives the time of all tasks of a role, in milliseconds.
func spentBy(r *spec.Receipt, role string) (ms int64) {
	for _, t := range r.Tasks {
		if t.Assignee == role {
			ms += t.DurationMs
		}
	}
	return ms
}

func (s *testSuite) requirements(v *runtime.GateVerdict) {
	for _, q := range v.Release {
		c := s.add("release "+q.Name, 0)
		switch {
		case q.Outcome == "held":
		case v.ReleaseConclusion != spec.Unsatisfied:
			s.skip(c, "it is "+q.Outcome+", and the yardstick does not require it")
		default:
			s.fail(c, runtime.GateReason{Code: "release", Message: strings.TrimSuffix(q.Outcome+": "+q.Reason, ": ")})
		}
	}
}
