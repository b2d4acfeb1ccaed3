package attest

import (
	"encoding/base64"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/open-multi-agent/oma/spec/keys"
)

// No bytes make the verifier panic, and none but those that were signed pass.
func FuzzVerify(f *testing.F) {
	r := receipt(f, "run_1")
	edPrivate, edPublic := keyPair(f, "ed25519", 1)
	ecPrivate, ecPublic := keyPair(f, "p256", 1)
	for _, env := range [][]byte{sign(f, r, Subject{}, edPrivate), sign(f, r, file("a"), ecPrivate), []byte(`{"payload":"e30=","signatures":[{"sig":"MAA="}]}`)} {
		f.Add(r, env)
		f.Add(r, edited(f, env, func(e *dsse.Envelope) { e.Signatures = append(e.Signatures, e.Signatures...) }))
		f.Add([]byte("{}"), env)
	}
	signed := map[string]bool{}
	for _, s := range []struct {
		about Subject
		key   *keys.Private
	}{{Subject{}, edPrivate}, {file("a"), ecPrivate}} {
		e, err := readEnvelope(sign(f, r, s.about, s.key))
		if err != nil {
			f.Fatal(err)
		}
		b, err := e.DecodeB64Payload()
		if err != nil {
			f.Fatal(err)
		}
		signed[string(b)] = true
	}
	f.Fuzz(func(t *testing.T, gotReceipt, env []byte) {
		for _, key := range []*keys.Public{edPublic, ecPublic} {
			if _, err := Verify(gotReceipt, env, key); err != nil {
				if code(t, err) == "" {
					t.Errorf("%v has no reason", err)
				}
				continue
			}
			e, err := readEnvelope(env)
			if err != nil {
				t.Fatal(err)
			}
			b, err := e.DecodeB64Payload()
			if err != nil || !signed[string(b)] || string(gotReceipt) != string(r) {
				t.Errorf("something passes that was not signed: %q of %q", b, gotReceipt)
			}
		}
	})
}

// A signature of any bytes, under a right payload: what an ASN.1 reader could trip over.
func FuzzSignatureBytes(f *testing.F) {
	r := receipt(f, "run_1")
	private, public := keyPair(f, "p256", 1)
	env := sign(f, r, Subject{}, private)
	for _, sig := range [][]byte{nil, {0x30, 0x00}, {0x30, 0x80, 0, 0}, {0x30, 0x06, 2, 1, 0, 2, 1, 0}, {0x30, 0x84, 0xff, 0xff, 0xff, 0xff}} {
		f.Add(sig)
	}
	f.Fuzz(func(t *testing.T, sig []byte) {
		b := edited(t, env, func(e *dsse.Envelope) { e.Signatures[0].Sig = base64.StdEncoding.EncodeToString(sig) })
		if _, err := Verify(r, b, public); code(t, err) != "signature-invalid" {
			t.Errorf("%x: %v", sig, err)
		}
	})
}
