package plandiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// Direction says which way a difference goes from the first plan to the second.
type Direction string

const (
	Widened  Direction = "widened"  // more may happen, or it cannot be shown that no more may
	Narrowed Direction = "narrowed" // less may happen
	Changed  Direction = "changed"  // what may happen is the same
)

// Change is one difference.
type Change struct {
	Direction Direction `json:"direction"`
	// Path is where it stands, with names in place of positions: agents.writer.tools.bash.
	Path  spec.Path `json:"path"`
	Agent string    `json:"agent,omitempty"` // empty: it is of the whole plan
	What  string    `json:"what"`            // in words
	// A and B are what each plan says there, a text of several lines or of more than textLimit bytes as its digest. nil:
	// nothing.
	A json.RawMessage `json:"a,omitempty"`
	B json.RawMessage `json:"b,omitempty"`
	// Diff is of such texts, unified. Empty: there is none, or a text is too large.
	Diff string `json:"diff,omitempty"`
}

// Result is all that differs between two plans: widened first, then narrowed, then the rest.
type Result struct {
	Same     bool     `json:"same"` // the two plans are one and the same
	A        Side     `json:"a"`
	B        Side     `json:"b"`
	Widened  int      `json:"widened"` // how many changes
	Narrowed int      `json:"narrowed"`
	Changed  int      `json:"changed"`
	Changes  []Change `json:"changes"`
}

// Side names one of the plans.
type Side struct {
	Team   string `json:"team"`
	Digest string `json:"digest"`
}

// Compare says what differs between two plans. It fails for a plan that cannot be encoded.
func Compare(a, b *spec.Plan) (*Result, error) {
	docA, err := document(a)
	if err != nil {
		return nil, err
	}
	docB, err := document(b)
	if err != nil {
		return nil, err
	}
	r := &Result{A: Side{a.Team.Name, a.Digest}, B: Side{b.Team.Name, b.Digest}, Changes: differences(docA, docB)}
	for _, c := range r.Changes {
		switch c.Direction {
		case Widened:
			r.Widened++
		case Narrowed:
			r.Narrowed++
		default:
			r.Changed++
		}
	}
	r.Same = len(r.Changes) == 0
	return r, nil
}

// document is a plan as its own JSON has it, so that no member can be forgotten. Numbers keep their text.
func document(p *spec.Plan) (object, error) {
	raw, err := p.Encode()
	if err != nil {
		return nil, fmt.Errorf("the plan cannot be encoded: %w", err)
	}
	var doc object
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return doc, d.Decode(&doc)
}

// object is a JSON object. A nil one is none.
type object = map[string]any

// differences compares two plans as documents.
func differences(a, b object) []Change {
	w := &walk{a: a, b: b, both: inBoth(a, b), readers: map[string]string{}, changes: []Change{}}
	w.at(plan(), place{}, a, b)
	if len(w.changes) == 0 && a["digest"] != b["digest"] {
		w.report(place{path: "digest"}, unexplained, a["digest"], b["digest"])
	}
	order := []Direction{Widened, Narrowed, Changed}
	slices.SortStableFunc(w.changes, func(x, y Change) int {
		return slices.Index(order, x.Direction) - slices.Index(order, y.Direction)
	})
	return w.changes
}

// walk goes through two documents at once.
type walk struct {
	a, b    object
	both    map[string]bool   // the agents of both
	readers map[string]string // memory of reader
	changes []Change
}

// place is where a walk is.
type place struct {
	path  spec.Path
	agent string
}

// verdict is what a difference comes to. Without a direction it is told elsewhere.
type verdict struct {
	Direction
	words string
}

var (
	unknown     = verdict{Widened, "differs, and what this part means is not known"}
	unexplained = verdict{Widened, "differs, and nothing says why"}
	elsewhere   = verdict{}
)

// part says what a part of a plan means. One of judge, choose, of and each is set. A nil part is not known.
type part struct {
	// judge says what it means that the value is b and no longer a. nil stands for a value that is not there.
	judge func(w *walk, a, b any) verdict
	// choose gives the part where it depends on the values.
	choose func(a, b any) *part
	// of are the members of an object. One that is not there is taken for an empty one, unless added or removed says
	// what that means.
	of map[string]*part
	// each is what every element of a list, or member of an object with names of the user's own, is.
	each *part
	// by names the members whose values tell elements of a list apart. nil: they are texts, which do so themselves.
	by []string
	// agent is the member that names the agent an element is about. Empty: the one of the part around it.
	agent string

	added, removed func(w *walk, e any) verdict
	// reads are words by which rules see this part. What rules see may open one that was closed, so a difference here is
	// never shown to narrow, or to change nothing, while a rule names one of them.
	reads []string
}

func (w *walk) at(p *part, at place, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	if p != nil && p.choose != nil {
		p = p.choose(a, b)
	}
	switch {
	case p == nil:
		w.report(at, unknown, a, b)
	case p.judge != nil:
		w.report(at, w.guarded(p, p.judge(w, a, b)), a, b)
	case a == nil && p.of != nil && p.added != nil:
		w.report(at, w.guarded(p, p.added(w, b)), a, b)
	case b == nil && p.of != nil && p.removed != nil:
		w.report(at, w.guarded(p, p.removed(w, a)), a, b)
	case p.of != nil:
		w.members(p, at, a, b)
	default:
		w.elements(p, at, a, b)
	}
}

// guarded is a verdict that no rule can turn around.
func (w *walk) guarded(p *part, v verdict) verdict {
	if v.Direction == Widened || v.Direction == "" {
		return v
	}
	for _, word := range p.reads {
		if rule := w.reader(word); rule != "" {
			return verdict{Widened, v.words + fmt.Sprintf(", and rule %q reads it", rule)}
		}
	}
	return v
}

// members compares two objects member by member. Nothing in either is left out.
func (w *walk) members(p *part, at place, a, b any) {
	x, okA := a.(object)
	y, okB := b.(object)
	if !okA && a != nil || !okB && b != nil {
		w.report(at, unknown, a, b)
		return
	}
	for _, name := range union(sortedKeys(x), sortedKeys(y)) {
		w.at(p.of[name], place{at.path.Key(name), at.agent}, x[name], y[name])
	}
}

// elements compares two lists, or two objects with names of the user's own, by the names of their elements.
func (w *walk) elements(p *part, at place, a, b any) {
	x, okA := named(p, a)
	y, okB := named(p, b)
	if !okA || !okB {
		w.report(at, verdict{Widened, "differs, and its elements cannot be told apart"}, a, b)
		return
	}
	for _, name := range union(x.names, y.names) {
		e, f := x.of[name], y.of[name]
		in := place{at.path.Key(name), at.agent}
		if p.agent != "" {
			in.agent = first(member(f, p.agent), member(e, p.agent))
		}
		switch {
		case e == nil:
			w.report(in, w.guarded(p, p.added(w, f)), nil, unnamed(f, name))
		case f == nil:
			w.report(in, w.guarded(p, p.removed(w, e)), unnamed(e, name), nil)
		default:
			w.at(p.each, in, e, f)
		}
	}
	if len(x.names) == 0 && len(y.names) == 0 { // an empty list is not none
		w.report(at, unknown, a, b)
	}
	if _, list := b.([]any); list && !slices.Equal(x.in(y), y.in(x)) {
		w.report(at, w.guarded(p, verdict{Changed, "stand in another order"}), x.names, y.names)
	}
}

func (w *walk) report(at place, v verdict, a, b any) {
	if v.Direction == "" {
		return
	}
	c := Change{Direction: v.Direction, Path: at.path, Agent: at.agent, What: v.words}
	c.A, c.B, c.Diff = shown(a, b)
	w.changes = append(w.changes, c)
}
