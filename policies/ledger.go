package policies

import "github.com/open-multi-agent/oma/spec"

// Ledger keeps one ceiling of tokens and one of money: reserve before a call, settle after it. A ledger may have a
// parent, whose ceilings hold as well. Amounts are whole tokens and whole pico-dollars, so remainders are exact.
//
// It is not safe for concurrent use: one thread of the core runs at a time.
type Ledger struct {
	parent     *Ledger
	maxTokens  int64     // 0: no ceiling
	maxCost    *spec.USD // nil: no ceiling
	usedTokens int64
	heldTokens int64
	usedCost   spec.USD
	heldCost   spec.USD
	aside      map[string]int64 // by role
	asideTotal int64
}

// NewLedger makes the ledger of a run. 0 tokens and a nil cost mean no ceiling.
func NewLedger(maxTokens int64, maxCost *spec.USD) *Ledger {
	return &Ledger{maxTokens: maxTokens, maxCost: maxCost}
}

// Child makes a ledger below l, such as an agent's own within its run's.
func (l *Ledger) Child(maxTokens int64) *Ledger { return &Ledger{parent: l, maxTokens: maxTokens} }

// Ask is a model call before it is made.
type Ask struct {
	// Output is the most output tokens the call would like. 0: no wish, which under a ceiling means DefaultOutput.
	Output int64
	// Input estimates the request's tokens. It makes parallel calls see each other and never refuses one.
	Input  int64
	Price  spec.Price
	Spends bool // it costs something, and nobody knows before how much
}

// DefaultOutput is the output limit of a call that asks for none while a ceiling is in force.
const DefaultOutput = 8192

// Hold is what a call may use. The zero Hold holds nothing.
type Hold struct {
	Output int64 // the call's output limit; 0: none
	Cut    bool  // the ceiling made it lower than what was asked
	tokens int64
	cost   spec.USD
}

// Answer says how a reservation ended.
type Answer int

const (
	Granted Answer = iota
	// Wait says that calls in flight hold what this one needs: ask again when one has settled.
	Wait
	// NoTokens and NoMoney say that no output token remains. The call must not be made.
	NoTokens
	NoMoney
)

// Reserve holds back what a call may use. A call's output is cut to what remains, but only once nothing in flight can
// give anything back.
func (l *Ledger) Reserve(a Ask) (Hold, Answer) {
	if !l.bounded() {
		return Hold{Output: a.Output}, Granted
	}
	out, answer := l.offer(a)
	if answer != Granted {
		return Hold{}, answer
	}
	h := Hold{Output: out, Cut: out < a.want(), tokens: spec.AddCapped(out, a.Input),
		cost: a.Price.Cost(spec.Usage{Input: a.Input, Output: out})}
	for p := l; p != nil; p = p.parent {
		p.heldTokens = spec.AddCapped(p.heldTokens, h.tokens)
		p.heldCost = spec.AddCapped(p.heldCost, h.cost)
	}
	return h, Granted
}

// Remaining gives what is left of the ceilings, this ledger's and those above it: what is used, held by calls in flight
// or set aside is gone. nil: there is no ceiling.
func (l *Ledger) Remaining() *spec.BudgetRemaining {
	var left spec.BudgetRemaining
	for p := l; p != nil; p = p.parent {
		if p.maxTokens > 0 {
			n := max(p.maxTokens-spec.AddCapped(spec.AddCapped(p.usedTokens, p.heldTokens), p.asideTotal), 0)
			if left.Tokens == nil || n < *left.Tokens {
				left.Tokens = &n
			}
		}
		if p.maxCost != nil {
			c := max(*p.maxCost-spec.AddCapped(p.usedCost, p.heldCost), 0)
			if left.Cost == nil || c < *left.Cost {
				left.Cost = &c
			}
		}
	}
	if left == (spec.BudgetRemaining{}) {
		return nil
	}
	return &left
}

// Busy says that Reserve would answer Wait. It changes nothing.
func (l *Ledger) Busy(a Ask) bool {
	if !l.bounded() {
		return false
	}
	_, answer := l.offer(a)
	return answer == Wait
}

func (a Ask) want() int64 {
	if a.Output == 0 {
		return DefaultOutput
	}
	return a.Output
}

// offer gives the output tokens that this ledger and all above it allow.
func (l *Ledger) offer(a Ask) (int64, Answer) {
	out := a.want()
	for p := l; p != nil; p = p.parent {
		limit, why := p.affordable(out, &a)
		switch {
		case limit < out && p.heldTokens > 0:
			return 0, Wait
		case limit <= 0:
			return 0, why
		}
		out = min(out, limit)
	}
	return out, Granted
}

func (l *Ledger) bounded() bool {
	for p := l; p != nil; p = p.parent {
		if p.maxTokens > 0 || p.maxCost != nil {
			return true
		}
	}
	return false
}

// affordable gives how many of the wanted output tokens this ledger alone allows.
func (l *Ledger) affordable(want int64, a *Ask) (int64, Answer) {
	price := a.Price
	out, why := want, Granted
	if l.maxTokens > 0 {
		if free := l.maxTokens - min(l.usedTokens, l.maxTokens) - l.heldTokens - l.asideTotal; free < out {
			out, why = free, NoTokens
		}
	}
	if l.maxCost == nil {
		return out, why
	}
	free := *l.maxCost - min(l.usedCost, *l.maxCost) - l.heldCost
	switch {
	case free <= 0 && (price != (spec.Price{}) || a.Spends):
		return 0, NoMoney
	case price.Output > 0:
		if n := price.OutputFor(free); n < out {
			out, why = n, NoMoney
		}
	}
	return out, why
}

// Settle gives back what was held and counts what was used.
func (l *Ledger) Settle(h Hold, used spec.Usage, cost spec.USD) {
	for p := l; p != nil; p = p.parent {
		p.heldTokens -= h.tokens
		p.heldCost -= h.cost
		p.usedTokens = spec.AddCapped(p.usedTokens, used.Total())
		p.usedCost = spec.AddCapped(p.usedCost, cost)
	}
}

// SetAside holds tokens back for a required role that has not started; Release gives them back when it has. A role is
// set aside once.
func (l *Ledger) SetAside(role string, tokens int64) {
	if l.aside == nil {
		l.aside = map[string]int64{}
	}
	if _, twice := l.aside[role]; twice {
		return
	}
	l.aside[role] = tokens
	l.asideTotal += tokens
}

// Release frees what was set aside for a role. A role without anything aside is no error.
func (l *Ledger) Release(role string) {
	l.asideTotal -= l.aside[role]
	delete(l.aside, role)
}

// Used gives what has been spent.
func (l *Ledger) Used() (tokens int64, cost spec.USD) { return l.usedTokens, l.usedCost }

// Exhausted gives tokens or cost when a ceiling of this ledger has nothing left, else nothing.
func (l *Ledger) Exhausted() string {
	switch {
	case l.maxTokens > 0 && l.usedTokens >= l.maxTokens:
		return "tokens"
	case l.maxCost != nil && l.usedCost >= *l.maxCost:
		return "cost"
	}
	return ""
}

// Exceeded gives tokens or cost when more was used than a ceiling allows. Exactly the ceiling is fine.
func (l *Ledger) Exceeded() string {
	switch {
	case l.maxTokens > 0 && l.usedTokens > l.maxTokens:
		return "tokens"
	case l.maxCost != nil && l.usedCost > *l.maxCost:
		return "cost"
	}
	return ""
}
