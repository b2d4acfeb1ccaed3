package keys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	private, err := ReadPrivate(privatePEM(t, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))))
	if err != nil {
		t.Fatal(err)
	}
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
			_, err = ReadPublic(c.text)
		} else {
			_, err = ReadPrivate(c.text)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if len(private.ID()) != len("sha256:")+64 {
		t.Errorf("the id of a key is %q", private.ID())
	}
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

// No file makes the reader of keys panic, and what it reads can be used.
func FuzzKeys(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	f.Add(privatePEM(f, key))
	f.Add(publicPEM(f, key.Public()))
	f.Fuzz(func(t *testing.T, text []byte) {
		if k, err := ReadPublic(text); err == nil && (k.ID() == "" || k.Verify(t.Context(), text, nil) == nil) {
			t.Error("a key without an id, or one that nothing has to be signed with")
		}
		if k, err := ReadPrivate(text); err == nil {
			sig, err := k.Sign(t.Context(), text)
			if err != nil || k.Public().Verify(t.Context(), text, sig) != nil {
				t.Errorf("a key that was read does not sign: %v", err)
			}
		}
	})
}
