package attest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/spec/keys"
)

// MaxEnvelope is how many bytes an envelope may have, and maxSignatures how many signatures: each is tried. One that this
// package writes has one signature and less than 2 KiB.
const (
	MaxEnvelope   = 1 << 20
	maxSignatures = 32
)

// Error is why a signature does not hold. Code is one of the words that docs/receipts.md lists.
type Error struct {
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Message }

func failed(code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Sign gives the envelope of a signature over a receipt as it is stored. about is the file or folder that the receipt goes
// with; the zero Subject stands for the receipt itself. A receipt that is not whole is not signed.
func Sign(receipt []byte, about Subject, key *keys.Private) ([]byte, error) {
	said, err := predicateOf(receipt)
	if err != nil {
		return nil, err
	}
	if about.Digest == nil {
		about = Subject{"receipt", said.Receipt}
	}
	if !about.proper() {
		return nil, failed("other-artifact", "%s has no digest that can be signed", about.Name)
	}
	payload, err := json.Marshal(statement{StatementType, []Subject{about}, PredicateType, *said})
	if err != nil {
		return nil, err
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return nil, err
	}
	env, err := signer.SignPayload(context.Background(), PayloadType, payload)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(env, "", "  ")
	return append(b, '\n'), err
}

// Attested is what a signature proves: who signed a receipt, and what it is about.
type Attested struct {
	KeyID   string
	Subject Subject
	itself  bool // the subject is the receipt
}

// Verify holds an envelope against a receipt as it is stored and a key. Every error is an [*Error].
func Verify(receipt, envelope []byte, key *keys.Public) (*Attested, error) {
	want, err := predicateOf(receipt)
	if err != nil {
		return nil, err
	}
	env, err := readEnvelope(envelope)
	if err != nil {
		return nil, err
	}
	payload, err := signedBy(env, key)
	if err != nil {
		return nil, err
	}
	got, err := readStatement(payload)
	if err != nil {
		return nil, err
	}
	itself := Subject{Digest: want.Receipt}
	switch {
	case !itself.same(Subject{Digest: got.Predicate.Receipt}):
		return nil, failed("other-receipt", "the signature is of other bytes than this receipt's, of run %q", got.Predicate.RunID)
	case !equal(&got.Predicate, want):
		return nil, failed("predicate-differs", "what is signed says other things of the run than the receipt")
	}
	return &Attested{KeyID: key.ID(), Subject: got.Subject[0], itself: itself.same(got.Subject[0])}, nil
}

// Of says whether an artifact is what was signed for.
func (a *Attested) Of(artifact Subject) error {
	switch {
	case a.Subject.same(artifact):
		return nil
	case a.itself:
		return failed("other-artifact", "the signature is of the receipt alone and of no artifact; sign with --artifact")
	}
	return failed("other-artifact", "the signature is for %s, and this is %s", a.Subject, artifact)
}

// equal compares what two predicates say. A member that is missing and one that is empty say the same.
func equal(a, b *predicate) bool {
	x, err1 := canon.Bytes(a)
	y, err2 := canon.Bytes(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func readEnvelope(b []byte) (*dsse.Envelope, error) {
	if len(b) > MaxEnvelope {
		return nil, failed("envelope-malformed", "the signature has more than %d KiB", MaxEnvelope>>10)
	}
	if err := canon.Check(b); err != nil {
		return nil, failed("envelope-malformed", "the signature is %v", err)
	}
	var env dsse.Envelope
	if err := json.Unmarshal(b, &env); err != nil {
		return nil, failed("envelope-malformed", "the signature is no DSSE envelope")
	}
	switch {
	case env.PayloadType != PayloadType:
		return nil, failed("payload-type", "the envelope holds a %q, not a %q", env.PayloadType, PayloadType)
	case len(env.Signatures) == 0:
		return nil, failed("signature-missing", "the envelope has no signature in it")
	case len(env.Signatures) > maxSignatures:
		return nil, failed("envelope-malformed", "the envelope has %d signatures, and at most %d are tried", len(env.Signatures), maxSignatures)
	}
	if _, err := env.DecodeB64Payload(); err != nil {
		return nil, failed("envelope-malformed", "the payload of the envelope is not base64")
	}
	return &env, nil
}

// signedBy gives the payload if one of the signatures is of the key. Key ids in an envelope are hints that nobody signed:
// they decide nothing, and choose between two reasons.
func signedBy(env *dsse.Envelope, key *keys.Public) ([]byte, error) {
	bare := *env
	bare.Signatures = slices.Clone(env.Signatures)
	for i := range bare.Signatures {
		bare.Signatures[i].KeyID = ""
	}
	verifier, err := dsse.NewEnvelopeVerifier(key)
	if err != nil {
		return nil, err
	}
	_, payload, err := verifier.VerifyAndDecode(context.Background(), &bare)
	if err == nil {
		return payload, nil
	}
	names := map[string]bool{}
	for _, s := range env.Signatures {
		names[s.KeyID] = true
	}
	if names[key.ID()] {
		return nil, failed("signature-invalid", "the signature names this key and does not hold: it or what it signs was changed")
	}
	delete(names, "")
	if len(names) == 0 {
		return nil, failed("wrong-key", "no signature is by key %s", key.ID())
	}
	return nil, failed("wrong-key", "no signature is by key %s; they name %q", key.ID(), slices.Sorted(maps.Keys(names)))
}
