package plandiff

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"time"
)

type element = func(w *walk, e any) verdict

func widens(words string) element  { return as(Widened, words) }
func narrows(words string) element { return as(Narrowed, words) }
func changes(words string) element { return as(Changed, words) }

func as(d Direction, words string) element {
	return func(*walk, any) verdict { return verdict{d, words} }
}

// always is a part of which no difference can be shown to be harmless, or every one can.
func always(d Direction, words string, reads ...string) *part {
	return &part{judge: func(*walk, any, any) verdict { return verdict{d, words} }, reads: reads}
}

// changed is a part that decides nothing, save where rules read it.
func changed(words string, reads ...string) *part { return always(Changed, words, reads...) }

// ceiling is a number, an amount or a length of time up to which something is allowed. Where it is not there, or 0, it is
// unset; an unset of "" is no ceiling at all.
func ceiling(what, unset string, reads ...string) *part {
	return &part{reads: reads, judge: func(_ *walk, a, b any) verdict {
		x, okA := bound(a, unset)
		y, okB := bound(b, unset)
		switch {
		case !okA || !okB:
			return unknown
		case x == nil && y == nil:
			return verdict{Changed, what + " is none as before"}
		case y == nil:
			return verdict{Widened, what + " has no ceiling any more"}
		case x == nil:
			return verdict{Narrowed, what + " has a ceiling"}
		}
		switch x.Cmp(y) {
		case -1:
			return verdict{Widened, what + " is raised"}
		case 1:
			return verdict{Narrowed, what + " is lowered"}
		}
		return verdict{Changed, what + " is the same, written out"}
	}}
}

// bound reads a ceiling. A nil one is none.
func bound(v any, unset string) (*big.Rat, bool) {
	r, ok := number(v)
	if ok && (r == nil || r.Sign() == 0) && unset != "" {
		return number(unset)
	}
	if ok && r != nil && r.Sign() == 0 {
		return nil, true
	}
	return r, ok && (r == nil || r.Sign() > 0)
}

// number reads a number, or a length of time in nanoseconds. A nil one is not there.
func number(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case json.Number:
		return new(big.Rat).SetString(string(v))
	case string:
		if d, err := time.ParseDuration(v); err == nil {
			return new(big.Rat).SetInt64(int64(d)), true
		}
		return new(big.Rat).SetString(v)
	}
	return nil, false
}

// money is an amount that counts against a ceiling: a lower one lets more happen under it.
func money(what string) *part {
	return &part{reads: []string{"budget"}, judge: func(_ *walk, a, b any) verdict {
		x, okA := number(a)
		y, okB := number(b)
		if okA && okB && x != nil && y != nil && x.Cmp(y) < 0 {
			return verdict{Narrowed, what + " is higher, so that a ceiling on cost buys less"}
		}
		return verdict{Widened, what + " is another one, so that a ceiling on cost may buy more"}
	}}
}

// ladder is a word out of several, from the one that lets most happen to the strictest. Where it is not there it is unset.
func ladder(what, unset string, words ...string) *part {
	rung := func(v any) int {
		if v == nil {
			v = unset
		}
		return slices.IndexFunc(words, func(w string) bool { return v == any(w) })
	}
	return &part{judge: func(_ *walk, a, b any) verdict {
		switch x, y := rung(a), rung(b); {
		case x < 0 || y < 0:
			return unknown
		case y < x:
			return verdict{Widened, what + " is weaker"}
		case y > x:
			return verdict{Narrowed, what + " is stricter"}
		}
		return verdict{Changed, what + " is the same, written out"}
	}}
}

// control is a switch that keeps something from happening while it is on. Where it is not there it is unset.
func control(on, off string, unset bool, reads ...string) *part {
	return &part{reads: reads, judge: func(_ *walk, a, b any) verdict { return switched(a, b, unset, true, on, off) }}
}

// licence is a switch that lets something happen while it is on.
func licence(on, off string, unset bool, reads ...string) *part {
	return &part{reads: reads, judge: func(_ *walk, a, b any) verdict { return switched(a, b, unset, false, on, off) }}
}

func switched(a, b any, unset, narrows bool, on, off string) verdict {
	x, okA := isOn(a, unset)
	y, okB := isOn(b, unset)
	words := off
	if y {
		words = on
	}
	switch {
	case !okA || !okB:
		return unknown
	case x == y:
		return verdict{Changed, words + ", as before"}
	case y == narrows:
		return verdict{Narrowed, words}
	}
	return verdict{Widened, words}
}

func isOn(v any, unset bool) (is, ok bool) {
	if v == nil {
		return unset, true
	}
	is, ok = v.(bool)
	return is, ok
}

// condition is something that must hold where it is there. Two different ones are not compared.
func condition(what string) *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		switch {
		case a == nil:
			return verdict{Narrowed, what + " is asked for"}
		case b == nil:
			return verdict{Widened, what + " is no longer asked for"}
		}
		return verdict{Widened, what + " is another one, which may ask for less"}
	}}
}

// permits is a list of texts, each of which lets something happen.
func permits(more, fewer string, reads ...string) *part {
	return &part{each: changed(""), added: widens(more), removed: narrows(fewer), reads: reads}
}

// demands is a list of texts, each of which must be met.
func demands(more, fewer string) *part {
	return &part{each: changed(""), added: narrows(more), removed: widens(fewer)}
}

// bounds is a list of all that is allowed. One that is not there bounds nothing.
func bounds(what string) *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		x, okA := texts(a)
		y, okB := texts(b)
		switch {
		case !okA || !okB:
			return unknown
		case b == nil:
			return verdict{Widened, "the limit on " + what + " is gone"}
		case a == nil:
			return verdict{Narrowed, what + " are limited"}
		case slices.ContainsFunc(y, func(s string) bool { return !slices.Contains(x, s) }):
			return verdict{Widened, "the limit on " + what + " allows more"}
		}
		return verdict{Narrowed, "the limit on " + what + " allows less"}
	}}
}

// sequence is an order that must be kept. A longer one that keeps the old one is stricter.
func sequence(what string) *part {
	return &part{judge: func(_ *walk, a, b any) verdict {
		x, okA := texts(a)
		y, okB := texts(b)
		switch {
		case !okA || !okB:
			return unknown
		case len(y) == 0:
			return verdict{Widened, what + " is no longer asked for"}
		case len(x) == 0:
			return verdict{Narrowed, what + " is asked for"}
		}
		kept := slices.DeleteFunc(slices.Clone(y), func(s string) bool { return !slices.Contains(x, s) })
		if reflect.DeepEqual(kept, x) {
			return verdict{Narrowed, what + " has more in it"}
		}
		return verdict{Widened, what + " is another one"}
	}}
}
