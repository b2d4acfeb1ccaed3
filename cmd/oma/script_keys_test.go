package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// keypair makes a key that signs and the one to verify with: keypair KIND NAME writes NAME.pem, for its owner only, and
// NAME.pub.pem. KIND is ed25519, p256 or p384.
func keypair(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keypair KIND NAME")
	}
	key, err := newKey(args[0])
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	ts.Check(err)
	write := func(name, kind string, der []byte, mode os.FileMode) {
		ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode))
	}
	write(args[1]+".pem", "PRIVATE KEY", private, 0o600)
	write(args[1]+".pub.pem", "PUBLIC KEY", public, 0o644)
}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "p256":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "p384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}
