package policies

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

// CheckReviewers finds what would keep a request from ever being decided, or would let one person count as two. at is the
// place of the approvals.
func CheckReviewers(a *spec.Approvals, at spec.Path) spec.Diagnostics {
	c := reviewerCheck{ids: map[string]string{}, owners: map[string]string{}}
	for i := range a.Reviewers {
		c.reviewer(&a.Reviewers[i], at.Key("reviewers").Index(i))
	}
	c.quorum(a, at)
	c.separate(a, at)
	c.unproven(a, at)
	return c.diags
}

// quorum looks for one that nobody can reach, or that one person can reach alone.
func (c *reviewerCheck) quorum(a *spec.Approvals, at spec.Path) {
	path, all := at.Key("quorum"), len(a.Reviewers)
	switch {
	case a.Quorum <= 1:
	case all > 0 && a.Quorum > all:
		c.diags.Errorf("approval-quorum", path, "quorum is %d, and only %d can decide, so nothing could ever be approved", a.Quorum, all).Hint =
			"name more reviewers, or lower the quorum"
	case c.keyed == 0 && !a.SeparateApprover:
		c.diags.Warnf("approval-quorum", path, "quorum is %d, and nothing proves that they are %d people: no reviewer has a key", a.Quorum, a.Quorum).Hint =
			"name reviewers with a publicKey each"
	}
}

// separate looks for too few reviewers whose decisions separateApprover takes.
func (c *reviewerCheck) separate(a *spec.Approvals, at spec.Path) {
	path, need, all := at.Key("separateApprover"), max(a.Quorum, 1), len(a.Reviewers)
	switch {
	case !a.SeparateApprover:
	case all == 0:
		c.diags.Errorf("approval-separate", path, "separateApprover takes signed decisions alone, and there are no reviewers").Hint = "name reviewers with a publicKey each"
	case c.keyed == 0:
		c.diags.Errorf("approval-separate", path, "separateApprover takes signed decisions alone, and no reviewer has a key").Hint = "add publicKey to the reviewers"
	case c.keyed < need && need <= all:
		c.diags.Errorf("approval-separate", path, "separateApprover takes signed decisions alone, and %d of the %d needed reviewers have a key", c.keyed, need).Hint =
			"add publicKey to the others, or lower the quorum"
	}
}

// unproven warns of the reviewers that keep the keys of the others from proving anything.
func (c *reviewerCheck) unproven(a *spec.Approvals, at spec.Path) {
	if c.keyed == 0 || a.SeparateApprover && c.keyed < a.Quorum {
		return // there is another finding about it
	}
	for i, r := range a.Reviewers {
		if r.PublicKey != "" {
			continue
		}
		code, why := "approval-key", "so whoever gives this name decides, and the keys of the others keep nobody out"
		if a.SeparateApprover {
			code, why = "approval-separate", "so no decision of theirs counts under separateApprover"
		}
		c.diags.Warnf(code, at.Key("reviewers").Index(i).Key("id"), "reviewer %q has no key, %s", r.ID, why).Hint = "add publicKey, or leave the reviewer out"
	}
}

// maxReviewer bounds a reviewer's name, in bytes.
const maxReviewer = 200

// isReviewer says that a text can name somebody: nothing in it is invisible, so that two names that look the same are
// the same, as far as spaces and control characters go.
func isReviewer(id string) bool {
	return id != "" && len(id) <= maxReviewer && id == strings.TrimSpace(id) && utf8.ValidString(id) && !strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}

// folded gives what names that differ only in case have in common, as [strings.EqualFold] compares them.
func folded(id string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, id)
}

type reviewerCheck struct {
	diags  spec.Diagnostics
	ids    map[string]string // as they were written, folded
	owners map[string]string // by the id of the key
	keyed  int               // reviewers that have a key
}

func (c *reviewerCheck) reviewer(r *spec.Reviewer, at spec.Path) {
	low := folded(r.ID)
	switch before, taken := c.ids[low]; {
	case !isReviewer(r.ID):
		c.diags.Errorf("approval-reviewer", at.Key("id"), "%q is no reviewer's id", clip(r.ID, maxReviewer)).Hint =
			fmt.Sprintf("write a name of at most %d bytes, of characters that can be seen, without space around it", maxReviewer)
	case taken && before == r.ID:
		c.diags.Errorf("approval-reviewer", at.Key("id"), "reviewer %q is declared twice", r.ID).Hint = "one reviewer counts once: keep one of them"
	case taken:
		c.diags.Errorf("approval-reviewer", at.Key("id"), "reviewers %q and %q differ only in case", before, r.ID).Hint = "one reviewer counts once: give them different ids"
	}
	c.ids[low] = r.ID
	if r.PublicKey == "" {
		return
	}
	c.keyed++
	path := at.Key("publicKey")
	if private([]byte(r.PublicKey)) {
		c.diags.Errorf("approval-private-key", path, "publicKey of reviewer %q is a private key", r.ID).Hint =
			"whoever can read this file can now decide as this reviewer: make a new key, and write its public half here"
		return
	}
	key, err := keys.ReadPublic([]byte(r.PublicKey))
	if err != nil {
		c.diags.Errorf("approval-key", path, "the key of reviewer %q cannot be used: %v", r.ID, err).Hint =
			"openssl genpkey -algorithm ed25519 -out KEY makes one, and what openssl pkey -in KEY -pubout prints belongs here, after |"
		return
	}
	if before, taken := c.owners[key.ID()]; taken {
		c.diags.Errorf("approval-key", path, "reviewers %q and %q have one key, so one person would count as two", before, r.ID).Hint = "give each reviewer a key of their own"
	}
	c.owners[key.ID()] = cmp.Or(c.owners[key.ID()], r.ID)
}

// private looks for a private key anywhere in a text: a public one beside it is no excuse.
func private(text []byte) bool {
	for len(text) > 0 {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return true
		}
		text = rest
	}
	return bytes.Contains(text, []byte("PRIVATE KEY"))
}
