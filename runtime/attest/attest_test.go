package attest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

// receipt is a whole receipt of a run.
func receipt(t testing.TB, run string) []byte {
	t.Helper()
	r := &spec.Receipt{Envelope: spec.Envelope{APIVersion: spec.APIVersion, Kind: spec.KindReceipt}, RunID: run, Team: spec.PlanTeam{Name: "t"},
		Plan: spec.PlanRef{Digest: "sha256:plan"}, Status: spec.Status{Code: spec.StatusOK}, GovernanceConclusion: spec.Satisfied,
		ReleaseConclusion: spec.NotApplicable, Trees: []spec.Tree{{Before: "t1", Cwd: ".", Digest: tree("before")}, {Cwd: ".", Digest: tree("end")}},
		Evidence: spec.Evidence{Journal: spec.JournalRef{Events: 7, Head: "sha256:head"}}}
	b, err := runtime.SealReceipt(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tree makes a digest as the trees of a receipt have it.
func tree(of string) string { return "sha256:" + file(of).Digest["sha256"] }

func file(content string) Subject { return File("app.tar", sha256.Sum256([]byte(content))) }

// keyPair gives a pair of a kind, ed25519 or p256, that follows from the seed.
func keyPair(t testing.TB, kind string, seed byte) (*keys.Private, *keys.Public) {
	t.Helper()
	var key crypto.Signer = ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))
	if kind == "p256" {
		k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), []byte(strings.Repeat(string(rune(seed)), 32)))
		if err != nil {
			t.Fatal(err)
		}
		key = k
	}
	private, err := keys.ReadPrivate(privatePEM(t, key))
	if err != nil {
		t.Fatal(err)
	}
	public, err := keys.ReadPublic(publicPEM(t, key.Public()))
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

func privatePEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func publicPEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func sign(t testing.TB, receipt []byte, about Subject, key *keys.Private) []byte {
	t.Helper()
	env, err := Sign(receipt, about, key)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// code is the reason of a failure. Empty: there is none.
func code(t testing.TB, err error) string {
	t.Helper()
	var e *Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e):
		t.Fatalf("%v has no code", err)
	}
	return e.Code
}

func TestSignedHolds(t *testing.T) {
	r := receipt(t, "run_1")
	for _, kind := range []string{"ed25519", "p256"} {
		private, public := keyPair(t, kind, 1)
		for _, about := range []Subject{{}, file("the release"), Tree("out", tree("end"))} {
			env := sign(t, r, about, private)
			got, err := Verify(r, env, public)
			if err != nil {
				t.Fatalf("%s %s: %v", kind, about, err)
			}
			want := about
			if about.Digest == nil {
				want = File("receipt", sha256.Sum256(r))
			}
			if diff := cmp.Diff(want, got.Subject); diff != "" || got.KeyID != private.ID() || got.KeyID != public.ID() {
				t.Errorf("%s: by %s, subject (-want +got):\n%s", kind, got.KeyID, diff)
			}
			if again := sign(t, r, about, private); string(again) != string(env) {
				t.Errorf("%s: the same key signs the same in two ways", kind)
			}
		}
	}
}

// What is signed can be read by whoever knows in-toto and not this program.
func TestStatementIsInToto(t *testing.T) {
	private, _ := keyPair(t, "ed25519", 1)
	r := receipt(t, "run_1")
	env, err := readEnvelope(sign(t, r, file("the release"), private))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := env.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       []any{map[string]any{"name": "app.tar", "digest": map[string]any{"sha256": file("the release").Digest["sha256"]}}},
		"predicateType": "https://open-multi-agent.org/oma/receipt/v1",
		"predicate": map[string]any{"receipt": map[string]any{"sha256": file(string(r)).Digest["sha256"]}, "runId": "run_1", "team": "t",
			"plan": map[string]any{"digest": "sha256:plan"}, "status": "ok", "governanceConclusion": "satisfied", "releaseConclusion": "not-applicable",
			"journal": map[string]any{"events": 7.0, "head": "sha256:head"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || env.PayloadType != "application/vnd.in-toto+json" {
		t.Errorf("%s (-want +got):\n%s", env.PayloadType, diff)
	}
}

// edited is an envelope with one change.
func edited(t testing.TB, env []byte, change func(*dsse.Envelope)) []byte {
	t.Helper()
	var e dsse.Envelope
	if err := json.Unmarshal(env, &e); err != nil {
		t.Fatal(err)
	}
	change(&e)
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// resigned is a payload with one change, signed like a right one: what a key holder with another program could make.
func resigned(t testing.TB, env []byte, key *keys.Private, change func(map[string]any)) []byte {
	t.Helper()
	return edited(t, env, func(e *dsse.Envelope) {
		payload, err := e.DecodeB64Payload()
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := json.Unmarshal(payload, &doc); err != nil {
			t.Fatal(err)
		}
		change(doc)
		if payload, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		*e = *sealed(t, key, e.PayloadType, payload)
	})
}

func sealed(t testing.TB, key *keys.Private, kind string, payload []byte) *dsse.Envelope {
	t.Helper()
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	env, err := signer.SignPayload(t.Context(), kind, payload)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// N4: whatever part is changed, the signature does not hold, for a reason of its own.
func TestN4Tampering(t *testing.T) {
	r, other := receipt(t, "run_1"), receipt(t, "run_2")
	for _, kind := range []string{"ed25519", "p256"} {
		private, public := keyPair(t, kind, 1)
		stranger, strange := keyPair(t, kind, 2)
		env, foreign := sign(t, r, Subject{}, private), sign(t, r, Subject{}, stranger)
		foreignSig := func(e *dsse.Envelope) dsse.Signature {
			var f dsse.Envelope
			if err := json.Unmarshal(foreign, &f); err != nil {
				t.Fatal(err)
			}
			return f.Signatures[0]
		}
		payload := func(change func(string) string) []byte {
			return edited(t, env, func(e *dsse.Envelope) {
				b, _ := e.DecodeB64Payload()
				e.Payload = base64.StdEncoding.EncodeToString([]byte(change(string(b))))
			})
		}
		for _, c := range []struct {
			name    string
			receipt []byte
			env     []byte
			key     *keys.Public
			want    string
		}{
			{name: "nothing", env: env},
			{name: "a receipt of another run", receipt: other, env: env, want: "other-receipt"},
			{name: "a receipt printed anew", receipt: []byte(strings.ReplaceAll(string(r), "  ", " ")), env: env, want: "other-receipt"},
			{name: "a byte behind the receipt", receipt: append(append([]byte{}, r...), '\n'), env: env, want: "other-receipt"},
			{name: "an edited receipt", receipt: []byte(strings.Replace(string(r), "run_1", "run_3", 1)), env: env, want: "receipt-damaged"},
			{name: "no receipt", receipt: []byte("{}"), env: env, want: "receipt-damaged"},
			{name: "the payload", env: payload(func(s string) string { return strings.Replace(s, "satisfied", "unsatisfied", 1) }), want: "signature-invalid"},
			{name: "a space in the payload", env: payload(func(s string) string { return s + " " }), want: "signature-invalid"},
			{name: "the payload type", env: edited(t, env, func(e *dsse.Envelope) { e.PayloadType = "text/plain" }), want: "payload-type"},
			{name: "the payload cut", env: edited(t, env, func(e *dsse.Envelope) { e.Payload = e.Payload[:len(e.Payload)-5] }), want: "envelope-malformed"},
			{name: "the signature", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].Sig = flipped(e.Signatures[0].Sig) }), want: "signature-invalid"},
			{name: "the signature cut", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].Sig = e.Signatures[0].Sig[:8] }), want: "signature-invalid"},
			{name: "the signature emptied", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].Sig = "" }), want: "signature-invalid"},
			{name: "a signature that is no base64", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].Sig = "§" }), want: "signature-invalid"},
			{name: "no signature", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures = nil }), want: "signature-missing"},
			{name: "a wrong key", env: env, key: strange, want: "wrong-key"},
			{name: "a signature by somebody else", env: foreign, want: "wrong-key"},
			{name: "a signature by somebody else in our name", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].Sig = foreignSig(e).Sig }), want: "signature-invalid"},
			{name: "ours under another name", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].KeyID = "somebody" })},
			{name: "two signatures, ours last", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures = append([]dsse.Signature{foreignSig(e)}, e.Signatures...) })},
			{name: "two signatures, ours twice", env: edited(t, env, func(e *dsse.Envelope) { e.Signatures = append(e.Signatures, e.Signatures...) })},
			{name: "two signatures, none ours", env: edited(t, foreign, func(e *dsse.Envelope) { e.Signatures = append(e.Signatures, e.Signatures...) }), want: "wrong-key"},
			{name: "more signatures than are tried", env: edited(t, env, func(e *dsse.Envelope) {
				for range maxSignatures {
					e.Signatures = append(e.Signatures, e.Signatures[0])
				}
			}), want: "envelope-malformed"},
			{name: "YM-04 two payloads", env: []byte(strings.Replace(string(env), "{", `{"payload": "e30=",`, 1)), want: "envelope-malformed"},
			{name: "something behind the envelope", env: append(append([]byte{}, env...), "{}"...), want: "envelope-malformed"},
			{name: "an empty envelope", env: []byte{}, want: "envelope-malformed"},
			{name: "another document", env: []byte("[1]"), want: "envelope-malformed"},
			{name: "a huge envelope", env: []byte(strings.Repeat(" ", MaxEnvelope+1)), want: "envelope-malformed"},
			{name: "signed: another predicate type", env: resigned(t, env, private, func(d map[string]any) { d["predicateType"] = "https://slsa.dev/provenance/v1" }), want: "predicate-type"},
			{name: "signed: another statement", env: resigned(t, env, private, func(d map[string]any) { d["_type"] = "x" }), want: "statement-type"},
			{name: "signed: no subject", env: resigned(t, env, private, func(d map[string]any) { d["subject"] = []any{} }), want: "statement-malformed"},
			{name: "signed: a subject with two digests", env: resigned(t, env, private, func(d map[string]any) {
				d["subject"].([]any)[0].(map[string]any)["digest"].(map[string]any)["md5"] = "00"
			}), want: "statement-malformed"},
			{name: "signed: no predicate", env: resigned(t, env, private, func(d map[string]any) { delete(d, "predicate") }), want: "other-receipt"},
			{name: "signed: another conclusion", env: resigned(t, env, private, func(d map[string]any) {
				d["predicate"].(map[string]any)["governanceConclusion"] = "not-applicable"
			}), want: "predicate-differs"},
			{name: "signed: a member that is new", env: resigned(t, env, private, func(d map[string]any) { d["predicate"].(map[string]any)["later"] = 1 })},
			{name: "signed: no JSON", env: edited(t, env, func(e *dsse.Envelope) { *e = *sealed(t, private, PayloadType, []byte("no")) }), want: "statement-malformed"},
		} {
			if c.receipt == nil {
				c.receipt = r
			}
			if c.key == nil {
				c.key = public
			}
			_, err := Verify(c.receipt, c.env, c.key)
			if got := code(t, err); got != c.want {
				t.Errorf("%s, %s: got %q (%v), want %q", kind, c.name, got, err, c.want)
			}
		}
	}
}

// flipped changes the last byte that a base64 text stands for.
func flipped(sig string) string {
	b, _ := base64.StdEncoding.DecodeString(sig)
	b[len(b)-1] ^= 1
	return base64.StdEncoding.EncodeToString(b)
}

func TestArtifact(t *testing.T) {
	private, public := keyPair(t, "ed25519", 1)
	r := receipt(t, "run_1")
	for _, c := range []struct {
		name            string
		signed, shipped Subject
		want            string
	}{
		{"the file", file("a"), file("a"), ""},
		{"the file under another name", file("a"), File("b.tar", sha256.Sum256([]byte("a"))), ""},
		{"another file", file("a"), file("b"), "other-artifact"},
		{"the folder", Tree("out", tree("a")), Tree("in", tree("a")), ""},
		{"another folder", Tree("out", tree("a")), Tree("out", tree("b")), "other-artifact"},
		{"a file with the digest of the folder", Tree("out", tree("a")), file("a"), "other-artifact"},
		{"nothing but the receipt", Subject{}, file("a"), "other-artifact"},
		{"the receipt", Subject{}, File("r", sha256.Sum256(r)), ""},
		{"a folder that cannot be looked at", file("a"), Subject{Name: "out"}, "other-artifact"},
	} {
		a, err := Verify(r, sign(t, r, c.signed, private), public)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := code(t, a.Of(c.shipped)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// Without a signature, only a folder that a required role looked at can be told, as it was when the run ended.
func TestArtifactWithoutASignature(t *testing.T) {
	r, err := runtime.ReadReceipt(receipt(t, "run_1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		artifact Subject
		want     string
	}{
		{"as it was left", Tree("out", tree("end")), ""},
		{"as it was before", Tree("out", tree("before")), "other-artifact"},
		{"another folder", Tree("out", tree("x")), "other-artifact"},
		{"a file", file("end"), "other-artifact"},
		{"no digest", Subject{Name: "out"}, "other-artifact"},
	} {
		if got := code(t, Reviewed(r, c.artifact)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatIsNotSigned(t *testing.T) {
	private, _ := keyPair(t, "ed25519", 1)
	for name, c := range map[string]struct {
		receipt []byte
		about   Subject
		want    string
	}{
		"an edited receipt":          {[]byte(strings.Replace(string(receipt(t, "run_1")), "run_1", "run_2", 1)), Subject{}, "receipt-damaged"},
		"a folder without a digest":  {receipt(t, "run_1"), Tree("out", "unknown"), "other-artifact"},
		"a digest of another length": {receipt(t, "run_1"), Tree("out", "sha256:00"), "other-artifact"},
	} {
		env, err := Sign(c.receipt, c.about, private)
		if got := code(t, err); got != c.want || env != nil {
			t.Errorf("%s: got %q and %d bytes, want %q", name, got, len(env), c.want)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	r := receipt(b, "run_1")
	private, public := keyPair(b, "ed25519", 1)
	env := sign(b, r, Subject{}, private)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(r, env, public); err != nil {
			b.Fatal(err)
		}
	}
}
