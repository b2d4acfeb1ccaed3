// Package keys reads the keys that sign and check, whoever signs what: Ed25519 and ECDSA on P-256, in PEM, and no other.
// It reads no file and draws no random number.
package keys

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// Public is a key that signatures are held against.
type Public struct {
	key crypto.PublicKey // ed25519.PublicKey, or *ecdsa.PublicKey on P-256
	id  string
}

// Private is a key that signs.
type Private struct {
	key    crypto.Signer
	public *Public
}

// ReadPublic reads an Ed25519 or ECDSA P-256 key in PEM, as openssl pkey -pubout writes it.
func ReadPublic(text []byte) (*Public, error) {
	der, err := onlyBlock(text, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("the PEM block holds no public key that can be read")
	}
	return newPublic(key)
}

// ReadPrivate reads an Ed25519 or ECDSA P-256 key in PEM and PKCS #8, as openssl genpkey writes it.
func ReadPrivate(text []byte) (*Private, error) {
	der, err := onlyBlock(text, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("the PEM block holds no private key that can be read")
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key is of a kind that cannot sign: want Ed25519 or ECDSA P-256")
	}
	public, err := newPublic(signer.Public())
	if err != nil {
		return nil, err
	}
	return &Private{signer, public}, nil
}

// onlyBlock gives the content of the one PEM block that a file must be. No part of the text stands in an error.
func onlyBlock(text []byte, want string) ([]byte, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, fmt.Errorf("this is no PEM file: want one block %s", want)
	case block.Type != want:
		return nil, fmt.Errorf("the PEM block is %q, not %q%s", block.Type, want, hint(block.Type, want))
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is something behind the PEM block: want one key alone")
	}
	return block.Bytes, nil
}

// hint says how to come from one kind of block to another. Empty: nobody knows.
func hint(got, want string) string {
	switch {
	case want == "PUBLIC KEY" && (got == "PRIVATE KEY" || got == "EC PRIVATE KEY"):
		return ": give the public key, and keep this one secret"
	case want == "PRIVATE KEY" && got == "EC PRIVATE KEY":
		return ": convert it with openssl pkcs8 -topk8 -nocrypt"
	case want == "PRIVATE KEY" && got == "ENCRYPTED PRIVATE KEY":
		return ": a key with a passphrase cannot be used here"
	}
	return ""
}

func newPublic(key crypto.PublicKey) (*Public, error) {
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return nil, errors.New("the key is ECDSA on another curve than P-256")
		}
	default:
		return nil, errors.New("the key is neither Ed25519 nor ECDSA P-256")
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return &Public{key, "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// ID is the SHA-256 of the key in DER.
func (p *Public) ID() string { return p.id }

// KeyID, Public and Verify are what the envelope asks of a key.
func (p *Public) KeyID() (string, error)   { return p.id, nil }
func (p *Public) Public() crypto.PublicKey { return p.key }

func (p *Public) Verify(_ context.Context, data, sig []byte) error {
	held := false
	switch k := p.key.(type) {
	case ed25519.PublicKey:
		held = ed25519.Verify(k, data, sig)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(data)
		held = ecdsa.VerifyASN1(k, sum[:], sig)
	}
	if !held {
		return errors.New("the signature does not hold")
	}
	return nil
}

// Public is the half that signatures are held against.
func (p *Private) Public() *Public { return p.public }

// ID is that of the public half.
func (p *Private) ID() string { return p.public.id }

// KeyID and Sign are what the envelope asks of a signer.
func (p *Private) KeyID() (string, error) { return p.public.id, nil }

// Sign needs no random number: Ed25519 takes none, and ECDSA without one takes it from key and message (RFC 6979).
func (p *Private) Sign(_ context.Context, data []byte) ([]byte, error) {
	if _, ok := p.key.(ed25519.PrivateKey); ok {
		return p.key.Sign(nil, data, crypto.Hash(0))
	}
	sum := sha256.Sum256(data)
	return p.key.Sign(nil, sum[:], crypto.SHA256)
}
