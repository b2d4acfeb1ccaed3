package policies

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func p384Key(t *testing.T) any {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

func publicPEM(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// What is about to be decided is refused where nobody could decide it, or one person could count as two.
func TestCheckReviewers(t *testing.T) {
	alicePEM, _ := keyPair(t, 1)
	bobPEM, _ := keyPair(t, 2)
	p384, weak := publicPEM(t, p384Key(t)), publicPEM(t, &rsa.PublicKey{N: big.NewInt(0).Lsh(big.NewInt(1), 2047), E: 65537})
	secret := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	named := func(ids ...string) (out []spec.Reviewer) {
		for _, id := range ids {
			out = append(out, spec.Reviewer{ID: id})
		}
		return out
	}
	a, b := spec.Reviewer{ID: "alice", PublicKey: alicePEM}, spec.Reviewer{ID: "bob", PublicKey: bobPEM}
	for _, c := range []struct {
		name string
		a    spec.Approvals
		want []string // code and path
	}{
		{"nothing", spec.Approvals{}, nil},
		{"all is well", spec.Approvals{Reviewers: []spec.Reviewer{a, b}, Quorum: 2, SeparateApprover: true}, nil},
		{"anybody, twice", spec.Approvals{Quorum: 2}, []string{"warning approval-quorum approvals.quorum"}},
		{"names, twice", spec.Approvals{Quorum: 2, Reviewers: named("x", "y")}, []string{"warning approval-quorum approvals.quorum"}},
		{"a quorum of one", spec.Approvals{Quorum: 1, Reviewers: named("x", "y")}, nil},
		{"one without a key", spec.Approvals{Reviewers: []spec.Reviewer{a, {ID: "x"}}}, []string{"warning approval-key approvals.reviewers[1].id"}},
		{"one without a key, whose word does not count", spec.Approvals{SeparateApprover: true, Reviewers: []spec.Reviewer{a, {ID: "x"}}},
			[]string{"warning approval-separate approvals.reviewers[1].id"}},
		{"cannot be seen", spec.Approvals{Reviewers: named("x\u200b", "\u202ex", "x\ty", "\u00a0", "\xff", strings.Repeat("x", maxReviewer+1))},
			[]string{"approval-reviewer approvals.reviewers[0].id", "approval-reviewer approvals.reviewers[1].id", "approval-reviewer approvals.reviewers[2].id",
				"approval-reviewer approvals.reviewers[3].id", "approval-reviewer approvals.reviewers[4].id", "approval-reviewer approvals.reviewers[5].id"}},
		{"can be seen", spec.Approvals{Reviewers: named("Zoë Ö.", "山田", strings.Repeat("x", maxReviewer))}, nil},
		{"case that small letters do not show", spec.Approvals{Reviewers: named("kim", "\u212aim", "straße", "\u017ftraße")},
			[]string{"approval-reviewer approvals.reviewers[1].id", "approval-reviewer approvals.reviewers[3].id"}},
		{"quorum", spec.Approvals{Reviewers: named("x"), Quorum: 2}, []string{"approval-quorum approvals.quorum"}},
		{"separate without reviewers", spec.Approvals{SeparateApprover: true}, []string{"approval-separate approvals.separateApprover"}},
		{"separate without keys", spec.Approvals{Reviewers: named("x", "y"), SeparateApprover: true}, []string{"approval-separate approvals.separateApprover"}},
		{"separate with too few keys", spec.Approvals{Reviewers: []spec.Reviewer{a, {ID: "x"}}, Quorum: 2, SeparateApprover: true}, []string{"approval-separate approvals.separateApprover"}},
		{"twice", spec.Approvals{Reviewers: named("x", "x")}, []string{"approval-reviewer approvals.reviewers[1].id"}},
		{"case", spec.Approvals{Reviewers: named("x", "X")}, []string{"approval-reviewer approvals.reviewers[1].id"}},
		{"empty", spec.Approvals{Reviewers: named("", " y")}, []string{"approval-reviewer approvals.reviewers[0].id", "approval-reviewer approvals.reviewers[1].id"}},
		{"no key", spec.Approvals{Reviewers: []spec.Reviewer{{ID: "x", PublicKey: "ssh-ed25519 AAAA"}}}, []string{"approval-key approvals.reviewers[0].publicKey"}},
		{"RSA", spec.Approvals{Reviewers: []spec.Reviewer{{ID: "x", PublicKey: weak}}}, []string{"approval-key approvals.reviewers[0].publicKey"}},
		{"another curve", spec.Approvals{Reviewers: []spec.Reviewer{{ID: "x", PublicKey: p384}}}, []string{"approval-key approvals.reviewers[0].publicKey"}},
		{"a private key", spec.Approvals{Reviewers: []spec.Reviewer{{ID: "x", PublicKey: secret}}}, []string{"approval-private-key approvals.reviewers[0].publicKey"}},
		{"a private key behind a public one", spec.Approvals{Reviewers: []spec.Reviewer{{ID: "x", PublicKey: alicePEM + secret}}}, []string{"approval-private-key approvals.reviewers[0].publicKey"}},
		{"one key for two", spec.Approvals{Reviewers: []spec.Reviewer{a, {ID: "x", PublicKey: "\n" + alicePEM}}}, []string{"approval-key approvals.reviewers[1].publicKey"}},
		{"all at once", spec.Approvals{Reviewers: []spec.Reviewer{a, {ID: "Alice", PublicKey: secret}, {ID: "x", PublicKey: "y"}}, Quorum: 4},
			[]string{"approval-reviewer approvals.reviewers[1].id", "approval-private-key approvals.reviewers[1].publicKey", "approval-key approvals.reviewers[2].publicKey",
				"approval-quorum approvals.quorum"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range CheckReviewers(&c.a, "approvals") {
				code := d.Code
				if d.Severity != spec.Error {
					code = string(d.Severity) + " " + code
				}
				got = append(got, code+" "+string(d.Path))
				if d.Hint == "" || strings.Contains(d.Message+d.Hint, "-----") {
					t.Errorf("no hint, or a key in it: %+v", d)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got)\n%s", diff)
			}
		})
	}
}
