package attest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	private, _ := keys(t, "ed25519", 1)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edKey := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	block := func(kind string) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("x")}) }
	for _, c := range []struct {
		name   string
		text   []byte
		public bool
		want   string
	}{
		{"empty", nil, false, "no PEM file"},
		{"no PEM", []byte("secret"), true, "no PEM file"},
		{"the wrong half, to sign", publicPEM(t, edKey.Public()), false, `"PUBLIC KEY", not "PRIVATE KEY"`},
		{"the wrong half, to verify", privatePEM(t, edKey), true, "keep this one secret"},
		{"an older form", block("EC PRIVATE KEY"), false, "openssl pkcs8"},
		{"with a passphrase", block("ENCRYPTED PRIVATE KEY"), false, "passphrase"},
		{"broken DER, to sign", block("PRIVATE KEY"), false, "no private key that can be read"},
		{"broken DER, to verify", block("PUBLIC KEY"), true, "no public key that can be read"},
		{"RSA, to sign", privatePEM(t, rsaKey), false, "neither Ed25519 nor ECDSA P-256"},
		{"RSA, to verify", publicPEM(t, rsaKey.Public()), true, "neither Ed25519 nor ECDSA P-256"},
		{"P-384", publicPEM(t, p384.Public()), true, "another curve"},
		{"two keys", append(privatePEM(t, edKey), privatePEM(t, edKey)...), false, "behind the PEM block"},
	} {
		var err error
		if c.public {
			_, err = ReadPublicKey(c.text)
		} else {
			_, err = ReadPrivateKey(c.text)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if len(private.ID()) != len("sha256:")+64 {
		t.Errorf("the id of a key is %q", private.ID())
	}
}
