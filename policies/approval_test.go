package policies

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// keyPair gives a key that seed decides, in PEM and ready to sign.
func keyPair(t testing.TB, seed byte) (public string, private *keys.Private) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return pems(t, key, key.Public())
}

func pems(t testing.TB, key, public any) (string, *keys.Private) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := keys.ReadPrivate(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	if der, err = x509.MarshalPKIXPublicKey(public); err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), private
}

func ask(t testing.TB, run, content string) *spec.ApprovalRequest {
	t.Helper()
	r, err := NewApproval(run, spec.ScopeToolCall, "writer:call_1", json.RawMessage(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Expires = noon.Add(time.Hour)
	return &r
}

func sign(t testing.TB, key *keys.Private, r *spec.ApprovalRequest, v spec.ApprovalVote) spec.ApprovalVote {
	t.Helper()
	text, err := ApprovalText(r, &v)
	if err != nil {
		t.Fatal(err)
	}
	if v.Signature, err = key.Sign(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return v
}

func vote(verdict, who string) spec.ApprovalVote {
	return spec.ApprovalVote{Verdict: verdict, Reviewer: who, DecidedAt: noon}
}

// K7: id and hash follow from the content, in whatever form that was written; reason and times are no part of it.
func TestNewApproval(t *testing.T) {
	a, b := ask(t, "r1", `{"toolName":"bash","input":{"command":"ls"}}`), ask(t, "r1", "{ \"input\": {\"command\":\"ls\"},\n \"toolName\":\"bash\"}")
	b.Reason, b.RequestedAt, b.Expires = "x", noon, time.Time{}
	if a.ID != b.ID || a.RequestHash != b.RequestHash || CheckApproval(a) != nil || CheckApproval(b) != nil {
		t.Errorf("one content, two requests: %+v and %+v", a, b)
	}
	if !strings.HasPrefix(a.ID, "apr_") || len(a.ID) != len("apr_")+32 || len(a.RequestHash) != 64 {
		t.Errorf("id %q, hash %q", a.ID, a.RequestHash)
	}
	other := ask(t, "r2", `{"toolName":"bash","input":{"command":"ls"}}`)
	if other.ID == a.ID || other.RequestHash != a.RequestHash {
		t.Errorf("of another run: %+v", other)
	}
	for name, edit := range map[string]func(*spec.ApprovalRequest){
		"id":       func(r *spec.ApprovalRequest) { r.ID = other.ID },
		"run":      func(r *spec.ApprovalRequest) { r.RunID = "r2" },
		"scope":    func(r *spec.ApprovalRequest) { r.Scope = spec.ScopePlan },
		"boundary": func(r *spec.ApprovalRequest) { r.Boundary = "writer:call_2" },
		"hash":     func(r *spec.ApprovalRequest) { r.RequestHash = strings.Repeat("0", 64) },
		"content": func(r *spec.ApprovalRequest) {
			r.Content = json.RawMessage(`{"toolName":"bash","input":{"command":"rm"}}`)
		},
		"no JSON": func(r *spec.ApprovalRequest) { r.Content = json.RawMessage(`{`) },
		"twice":   func(r *spec.ApprovalRequest) { r.Content = json.RawMessage(`{"a":1,"a":2}`) },
	} {
		r := *a
		if edit(&r); CheckApproval(&r) == nil {
			t.Errorf("an edited %s passes", name)
		}
	}
	if _, err := NewApproval("r1", spec.ScopePlan, "plan", nil); err == nil {
		t.Error("a request without content")
	}
}

// K10 and N2: whose decision counts.
func TestVoteRefused(t *testing.T) {
	alicePEM, alice := keyPair(t, 1)
	_, mallory := keyPair(t, 9)
	keyed := &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "alice", PublicKey: alicePEM}, {ID: "bob"}}}
	separate := &spec.PlanApprovals{Quorum: 1, Reviewers: keyed.Reviewers, SeparateApprover: true}
	r, other := ask(t, "r1", `{"a":1}`), ask(t, "r1", `{"a":2}`)
	elsewhere := ask(t, "r2", `{"a":1}`)
	good := sign(t, alice, r, vote("approve", "alice"))
	edited := func(f func(*spec.ApprovalVote)) spec.ApprovalVote { v := good; f(&v); return v }
	later := *r
	later.Expires = r.Expires.Add(time.Hour)
	for _, c := range []struct {
		name    string
		a       *spec.PlanApprovals
		request *spec.ApprovalRequest
		v       spec.ApprovalVote
		want    string // a part of the refusal; empty: it counts
	}{
		{"nobody is declared", nil, r, vote("approve", "anybody"), ""},
		{"no reviewers", &spec.PlanApprovals{}, r, vote("reject", "anybody"), ""},
		{"no verdict", nil, r, vote("maybe", "a"), `"maybe" is neither approve nor reject`},
		{"past tense", nil, r, vote("approved", "a"), "is neither"},
		{"no name", nil, r, vote("approve", ""), "is no reviewer"},
		{"space around a name", nil, r, vote("approve", "bob "), "is no reviewer"},
		{"a name of which a part cannot be seen", nil, r, vote("approve", "bo\u200bb"), `"bo\u200bb" is no reviewer`},
		{"a name that turns the line around", nil, r, vote("approve", "bob\u202e"), "is no reviewer"},
		{"a name that is no text", nil, r, vote("approve", "bob\xff"), "is no reviewer"},
		{"a name that is too long", nil, r, vote("approve", strings.Repeat("b", maxReviewer+1)), "is no reviewer"},
		{"a name with a space in it", nil, r, vote("approve", "Bob B. Ö"), ""},
		{"signed", keyed, r, good, ""},
		{"a name alone, where that is enough", keyed, r, vote("approve", "bob"), ""},
		{"unknown reviewer", keyed, r, vote("approve", "eve"), `"eve" is not among the team's reviewers`},
		{"another spelling", keyed, r, vote("approve", "Alice"), "is not among"},
		{"unsigned", keyed, r, vote("approve", "alice"), "must be signed"},
		{"signed by somebody else", keyed, r, sign(t, mallory, r, vote("approve", "alice")), "the signature is not one of"},
		{"signature of another request", keyed, other, good, "the signature is not one of"},
		{"signature of another run", keyed, elsewhere, good, "the signature is not one of"},
		{"signature under another expiry", keyed, &later, good, "the signature is not one of"},
		{"another verdict", keyed, r, edited(func(v *spec.ApprovalVote) { v.Verdict = "reject" }), "the signature is not one of"},
		{"another reason", keyed, r, edited(func(v *spec.ApprovalVote) { v.Reason = "fine" }), "the signature is not one of"},
		{"a signature that was cut", keyed, r, edited(func(v *spec.ApprovalVote) { v.Signature = v.Signature[:63] }), "the signature is not one of"},
		{"another's name over it", separate, r, edited(func(v *spec.ApprovalVote) { v.Reviewer = "bob" }), "nothing proves that it was"},
		{"author", separate, r, sign(t, alice, r, vote("approve", "alice")), `"alice" started the run`},
		{"author where nothing keeps them apart", keyed, r, sign(t, alice, r, vote("approve", "alice")), ""},
		{"a name alone is no proof", separate, r, vote("approve", "bob"), "nothing proves that it was"},
		{"no reviewers to be apart from", &spec.PlanApprovals{SeparateApprover: true}, r, vote("approve", "bob"), "nothing proves that it was"},
		{"a key that cannot be read", &spec.PlanApprovals{Reviewers: []spec.Reviewer{{ID: "alice", PublicKey: "x"}}}, r, good, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := VoteRefused(c.a, "alice", c.request, &c.v); err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if err := VoteRefused(separate, " Alice", r, &good); err == nil {
		t.Error("an author who spells the name in another way")
	}
	for _, author := range []string{"", " "} {
		if err := VoteRefused(separate, author, r, &good); err == nil || !strings.Contains(err.Error(), "nobody says who started the run") {
			t.Errorf("an author whom nobody knows: %v", err)
		}
	}
	if err := VoteRefused(separate, "carol", r, &good); err != nil {
		t.Errorf("somebody else than the author: %v", err)
	}
}

// K10: the first conclusive decision wins, and a quorum is of different people.
func TestConcludeApproval(t *testing.T) {
	alicePEM, alice := keyPair(t, 1)
	bobPEM, bob := keyPair(t, 2)
	r := ask(t, "r1", `{"a":1}`)
	yes := func(who string) spec.ApprovalVote { return vote("approve", who) }
	no := func(who string) spec.ApprovalVote { return vote("reject", who) }
	at := func(v spec.ApprovalVote, when time.Time) spec.ApprovalVote { v.DecidedAt = when; return v }
	anybody, two := &spec.PlanApprovals{Quorum: 1}, &spec.PlanApprovals{Quorum: 2}
	keyed := &spec.PlanApprovals{Quorum: 2, Reviewers: []spec.Reviewer{{ID: "alice", PublicKey: alicePEM}, {ID: "bob", PublicKey: bobPEM}, {ID: "carol"}}}
	aliceYes, bobYes := sign(t, alice, r, yes("alice")), sign(t, bob, r, yes("bob"))
	oneKey := &spec.PlanApprovals{Quorum: 2, Reviewers: []spec.Reviewer{{ID: "alice", PublicKey: alicePEM}, {ID: "alias", PublicKey: alicePEM + "\n"}}}
	alias := sign(t, alice, r, yes("alias"))
	early := noon.Add(time.Minute)
	for _, c := range []struct {
		name  string
		a     *spec.PlanApprovals
		votes []spec.ApprovalVote
		now   time.Time
		want  string
		count int // of the votes that counted
		proof bool
	}{
		{"nobody", nil, nil, early, "pending", 0, false},
		{"undeclared", nil, []spec.ApprovalVote{yes("a")}, early, "approved", 1, false},
		{"quorum of zero is one", &spec.PlanApprovals{}, []spec.ApprovalVote{yes("a")}, early, "approved", 1, false},
		{"first wins: approved", anybody, []spec.ApprovalVote{yes("a"), no("b")}, early, "approved", 1, false},
		{"first wins: rejected", anybody, []spec.ApprovalVote{no("b"), yes("a")}, early, "rejected", 1, false},
		{"one of two", two, []spec.ApprovalVote{yes("a")}, early, "pending", 1, false},
		{"two of two", two, []spec.ApprovalVote{yes("a"), yes("b"), no("c")}, early, "approved", 2, false},
		{"one rejection rejects", two, []spec.ApprovalVote{yes("a"), no("b"), yes("c")}, early, "rejected", 2, false},
		{"a reviewer counts once", two, []spec.ApprovalVote{yes("a"), yes("a")}, early, "pending", 1, false},
		{"and does not change", two, []spec.ApprovalVote{yes("a"), no("a")}, early, "pending", 1, false},
		{"nor in another spelling", two, []spec.ApprovalVote{yes("a"), yes("A")}, early, "pending", 1, false},
		{"one key under two names counts once", oneKey, []spec.ApprovalVote{aliceYes, alias}, early, "pending", 1, true},
		{"signed", keyed, []spec.ApprovalVote{aliceYes, bobYes}, early, "approved", 2, true},
		{"one of them only by name", keyed, []spec.ApprovalVote{aliceYes, yes("carol")}, early, "approved", 2, false},
		{"unsigned does not count", keyed, []spec.ApprovalVote{yes("alice"), bobYes}, early, "pending", 1, true},
		{"and leaves room for the signed one", keyed, []spec.ApprovalVote{yes("alice"), bobYes, aliceYes}, early, "approved", 2, true},
		{"unknown does not count", keyed, []spec.ApprovalVote{yes("eve"), no("eve"), aliceYes}, early, "pending", 1, true},
		{"just in time", anybody, []spec.ApprovalVote{at(yes("a"), r.Expires.Add(-1))}, r.Expires.Add(time.Hour), "approved", 1, false},
		{"at the moment", anybody, []spec.ApprovalVote{at(yes("a"), r.Expires)}, r.Expires.Add(-1), "pending", 0, false},
		{"late", anybody, []spec.ApprovalVote{at(no("a"), r.Expires.Add(1))}, r.Expires.Add(time.Hour), "expired", 0, false},
		{"not yet", anybody, nil, r.Expires.Add(-1), "pending", 0, false},
		{"now", anybody, nil, r.Expires, "expired", 0, false},
		{"too few in time", two, []spec.ApprovalVote{yes("a"), at(yes("b"), r.Expires)}, r.Expires, "expired", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ConcludeApproval(c.a, "", r, c.votes, c.now)
			if got.Decision != c.want || len(got.Votes) != c.count || got.Authenticated != c.proof {
				t.Errorf("got %s by %d votes, authenticated %t; want %s by %d, %t", got.Decision, len(got.Votes), got.Authenticated, c.want, c.count, c.proof)
			}
			if got.RequestID != r.ID || got.RequestHash != r.RequestHash || got.Scope != r.Scope || got.Boundary != r.Boundary || !got.Expires.Equal(r.Expires) {
				t.Errorf("of another request: %+v", got)
			}
		})
	}
	forever := *r
	forever.Expires = time.Time{}
	if got := ConcludeApproval(nil, "", &forever, nil, noon.AddDate(100, 0, 0)); got.Decision != "pending" {
		t.Errorf("a request without an end: %s", got.Decision)
	}
}

// N2: an author who is a reviewer decides nothing where somebody else must.
func TestSeparateApprover(t *testing.T) {
	alicePEM, alice := keyPair(t, 1)
	bobPEM, bob := keyPair(t, 2)
	a := &spec.PlanApprovals{Quorum: 1, SeparateApprover: true, Reviewers: []spec.Reviewer{{ID: "alice", PublicKey: alicePEM}, {ID: "bob", PublicKey: bobPEM}}}
	r := ask(t, "r1", `{"a":1}`)
	votes := []spec.ApprovalVote{sign(t, alice, r, vote("reject", "alice")), sign(t, bob, r, vote("approve", "bob"))}
	got := ConcludeApproval(a, "alice", r, votes, noon)
	if diff := cmp.Diff(votes[1:], got.Votes); diff != "" || got.Decision != "approved" || !got.Authenticated {
		t.Errorf("got %s, votes (-want +got)\n%s", got.Decision, diff)
	}
}

// No field of a signed decision can be changed, nor can it be moved to another request.
func FuzzSignedVote(f *testing.F) {
	for _, s := range [][4]string{{"approve", "alice", "", "2026-05-04T13:00:00Z"}, {"reject", "alice", "no", ""}, {"approve", "alice ", "a\nb", "x"}, {"approve", "bob", "\xff", ""}} {
		f.Add(s[0], s[1], s[2], "r1", spec.ScopeToolCall, "writer:call_1", `{"a":1}`, int64(3600), []byte(s[3]))
	}
	f.Fuzz(func(t *testing.T, verdict, who, reason, run, scope, boundary, content string, expires int64, tail []byte) {
		public, key := keyPair(t, 1)
		a := &spec.PlanApprovals{Quorum: 1, Reviewers: []spec.Reviewer{{ID: "alice", PublicKey: public}, {ID: "bob", PublicKey: public}}}
		r := ask(t, "r1", `{"a":1}`)
		good := sign(t, key, r, vote("approve", "alice"))
		if err := VoteRefused(a, "", r, &good); err != nil {
			t.Fatal(err)
		}
		moved, err := NewApproval(run, scope, boundary, json.RawMessage(content))
		if err != nil {
			return
		}
		moved.Expires = noon.Add(time.Duration(expires) * time.Second)
		v := spec.ApprovalVote{Verdict: verdict, Reviewer: who, Reason: reason, Signature: append(bytes.Clone(good.Signature), tail...), DecidedAt: noon}
		same := verdict == "approve" && who == "alice" && reason == "" && len(tail) == 0 && moved.ID == r.ID && moved.RequestHash == r.RequestHash && moved.Expires.Equal(r.Expires)
		if err := VoteRefused(a, "", &moved, &v); (err == nil) != same {
			t.Errorf("same %t, refused %v: %+v %+v", same, err, moved, v)
		}
		if got := ConcludeApproval(a, "", &moved, []spec.ApprovalVote{v}, noon); (got.Decision == spec.ApprovalApproved) != (same && noon.Before(moved.Expires)) {
			t.Errorf("concluded %s", got.Decision)
		}
	})
}

// No two votes on requests that differ in anything a reviewer says, or is shown, have one text to sign.
func FuzzApprovalText(f *testing.F) {
	f.Add("approve", "alice", "", int64(0), "reject", "alice", "", int64(0))
	f.Add("approve", "alice", "x\",\"requestHash\":\"", int64(3600), "approve", "alice", "x", int64(3600))
	f.Add("approve", "a\n", "", int64(1), "approve", "a", "\n", int64(1))
	f.Add("approve", "a", "\xff", int64(1), "approve", "a", "\ufffd", int64(1))
	f.Add("approve", "é", "", int64(1), "approve", "e\u0301", "", int64(1))
	f.Fuzz(func(t *testing.T, verdict1, who1, why1 string, ends1 int64, verdict2, who2, why2 string, ends2 int64) {
		text := func(verdict, who, why string, ends int64) (string, error) {
			r := ask(t, "r1", `{"a":1}`)
			if r.Expires = time.Unix(ends%(1<<35), ends%1e9).In(time.FixedZone("", int(ends%7)*3600)); ends == 0 {
				r.Expires = time.Time{}
			}
			b, err := ApprovalText(r, &spec.ApprovalVote{Verdict: verdict, Reviewer: who, Reason: why, DecidedAt: noon})
			return string(b), err
		}
		one, err1 := text(verdict1, who1, why1, ends1)
		two, err2 := text(verdict2, who2, why2, ends2)
		if err1 != nil || err2 != nil {
			return // nothing is signed
		}
		same := verdict1 == verdict2 && who1 == who2 && why1 == why2 && ends1%(1<<35) == ends2%(1<<35) && ends1%1e9 == ends2%1e9 && (ends1 == 0) == (ends2 == 0)
		if (one == two) != same {
			t.Errorf("same %t:\n%q\n%q", same, one, two)
		}
	})
}

// A request that passes is the one that its content makes, and no other content passes under its hash.
func FuzzCheckApproval(f *testing.F) {
	f.Add("r1", spec.ScopeToolCall, "writer:call_1", `{"a":1}`, "", "")
	f.Add("r1\n", spec.ScopePlan, "plan", `{"a":1,"a":2}`, "apr_00", "0")
	f.Add("r1", "plan\nx", "y", `"\ud800"`, "", "")
	f.Add("r1", "plan", "x", "1e400", "", "")
	f.Add("", "", "", "[1.0, 1]", "", "")
	f.Fuzz(func(t *testing.T, run, scope, boundary, content, id, hash string) {
		r, err := NewApproval(run, scope, boundary, json.RawMessage(content))
		if err != nil {
			return
		}
		if err := CheckApproval(&r); err != nil {
			t.Fatalf("what was made does not pass: %v", err)
		}
		again, err := NewApproval(run, scope, boundary, r.Content)
		if err != nil || again.ID != r.ID || again.RequestHash != r.RequestHash || !bytes.Equal(again.Content, r.Content) {
			t.Fatalf("its canonical content makes another one: %+v and %+v, %v", r, again, err)
		}
		for _, edited := range []spec.ApprovalRequest{
			{ID: id, RunID: run, Scope: scope, Boundary: boundary, RequestHash: r.RequestHash, Content: r.Content},
			{ID: r.ID, RunID: run, Scope: scope, Boundary: boundary, RequestHash: hash, Content: r.Content},
			{ID: r.ID, RunID: run + "x", Scope: scope, Boundary: boundary, RequestHash: r.RequestHash, Content: r.Content},
			{ID: r.ID, RunID: run, Scope: scope + "x", Boundary: boundary, RequestHash: r.RequestHash, Content: r.Content},
			{ID: r.ID, RunID: run, Scope: scope, Boundary: "x" + boundary, RequestHash: r.RequestHash, Content: r.Content},
			{ID: r.ID, RunID: run, Scope: scope, Boundary: boundary, RequestHash: r.RequestHash, Content: json.RawMessage(`{"x":` + string(r.Content) + `}`)},
		} {
			if same := edited.ID == r.ID && edited.RequestHash == r.RequestHash && edited.RunID == run && edited.Scope == scope && edited.Boundary == boundary && bytes.Equal(edited.Content, r.Content); (CheckApproval(&edited) == nil) != same {
				t.Errorf("same %t: %+v, made as %+v", same, edited, r)
			}
		}
	})
}
