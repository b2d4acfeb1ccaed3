package acp

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/open-multi-agent/oma/spec"
)

// Who reported the usage of a turn.
const (
	FromResult  = "result"  // the answer to the prompt
	FromQuota   = "quota"   // an extension of the answer, _meta.quota
	FromContext = "context" // the growth of the context, from usage_update
)

// meter follows what an agent reports beside its answers. Both figures are of the session as a whole: how full the
// context is, and what everything so far has cost.
type meter struct {
	mu    sync.Mutex
	used  int64 // the last figure; 0: there was none
	grown int64 // since the last turn was counted
	seen  bool  // whether there was a figure since then
	cost  spec.USD
	spent spec.USD // of cost, since the last turn was counted
	money bool     // whether there was a cost since then
}

// read takes a usage_update. A figure of zero or null, and a smaller one, say nothing of tokens that were used: a context
// that was shortened has cost what it cost.
func (m *meter) read(raw json.RawMessage) {
	var u struct {
		Used *float64 `json:"used"`
		Cost *struct {
			Amount   json.RawMessage `json:"amount"`
			Currency string          `json:"currency"`
		} `json:"cost"`
	}
	_ = json.Unmarshal(raw, &u) // members that fit are read
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.Used != nil && *u.Used > 0 && *u.Used <= spec.MaxTokens {
		now := int64(*u.Used)
		m.grown = spec.AddCapped(m.grown, max(now-m.used, 0))
		m.used, m.seen = now, true
	}
	if u.Cost != nil && u.Cost.Currency == "USD" {
		if now, ok := dollars(string(u.Cost.Amount)); ok {
			m.spent = spec.AddCapped(m.spent, max(now-m.cost, 0))
			m.cost, m.money = now, true
		}
	}
}

// dollars reads an amount exactly, and rounds it up to what is counted here. An agent that computes in floating point
// sends more decimals than that.
func dollars(text string) (spec.USD, bool) {
	near, err := strconv.ParseFloat(text, 64)
	if err != nil || !(near >= 0 && near < float64(math.MaxInt64)/float64(spec.Dollar)) || len(text) > 64 || strings.ContainsAny(text, "xXpP_") {
		return 0, false
	}
	if near < 1e-18 { // its exponent may be one that is not to be written out
		return spec.USD(math.Ceil(near)), true
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	exact.Mul(exact, new(big.Rat).SetInt64(int64(spec.Dollar)))
	pico, rest := new(big.Int).QuoRem(exact.Num(), exact.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		pico.Add(pico, big.NewInt(1))
	}
	return spec.USD(pico.Int64()), pico.IsInt64()
}

// take gives what has come in since it was last called. nil: nothing was reported.
func (m *meter) take() (context *spec.Usage, cost *spec.USD) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen && m.grown > 0 {
		context = &spec.Usage{Input: m.grown}
	}
	if m.money {
		spent := m.spent
		cost = &spent
	}
	m.grown, m.seen, m.spent, m.money = 0, false, 0, false
	return context, cost
}

// usageOf finds the usage of a turn: in the answer, in its extension, else in how the context grew. nil: nobody reported.
func usageOf(result json.RawMessage, context *spec.Usage) (*spec.Usage, string) {
	if u := resultUsage(member(result, "usage")); u != nil {
		return u, FromResult
	}
	if u := quotaUsage(member(result, "_meta", "quota", "token_count")); u != nil {
		return u, FromQuota
	}
	if context != nil {
		return context, FromContext
	}
	return nil, ""
}

// member follows names into an object. nil: there is no such member, or it is null.
func member(raw json.RawMessage, names ...string) json.RawMessage {
	for _, name := range names {
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil || isNull(object[name]) {
			return nil
		}
		raw = object[name]
	}
	return raw
}

// resultUsage reads the usage of an answer. Agents differ in whether cached tokens are part of the input, and thoughts of
// the output; the total they send tells. Without a total that fits, they are taken as apart, which counts the most.
func resultUsage(raw json.RawMessage) *spec.Usage {
	var w struct {
		Input   int64  `json:"inputTokens"`
		Output  int64  `json:"outputTokens"`
		Read    int64  `json:"cachedReadTokens"`
		Write   int64  `json:"cachedWriteTokens"`
		Thought int64  `json:"thoughtTokens"`
		Total   *int64 `json:"totalTokens"`
	}
	if raw == nil || json.Unmarshal(raw, &w) != nil {
		return nil
	}
	counts := []int64{w.Input, w.Output, w.Read, w.Write, w.Thought}
	if slices.Min(counts) < 0 || slices.Max(counts) > spec.MaxTokens {
		return nil
	}
	cache, thought := w.Read+w.Write, w.Thought
	if w.Total != nil {
		switch *w.Total - w.Input - w.Output {
		case cache + thought:
		case cache:
			thought = 0
		case thought:
			cache = 0
		case 0:
			cache, thought = 0, 0
		}
	}
	return counted(spec.Usage{Input: w.Input + cache, CachedInput: w.Read, Output: w.Output + thought, Reasoning: w.Thought})
}

func quotaUsage(raw json.RawMessage) *spec.Usage {
	var w struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
	}
	if raw == nil || json.Unmarshal(raw, &w) != nil {
		return nil
	}
	return counted(spec.Usage{Input: w.Input, Output: w.Output})
}

// counted keeps parts within their wholes. A turn of no tokens at all is one that nobody counted.
func counted(u spec.Usage) *spec.Usage {
	u.CachedInput, u.Reasoning = min(u.CachedInput, u.Input), min(u.Reasoning, u.Output)
	if !u.Sane() || u.Total() == 0 {
		return nil
	}
	return &u
}
