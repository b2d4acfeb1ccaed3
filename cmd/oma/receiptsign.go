package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"

	"github.com/open-multi-agent/oma/runtime/attest"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/keys"
)

// envelopeSuffix is what the name of a receipt's signature ends with.
const envelopeSuffix = ".dsse.json"

// envelopeOf is where the signature of a receipt is: where somebody says, else beside it.
func envelopeOf(receipt, given string) string { return cmp.Or(given, receipt+envelopeSuffix) }

// privateKey reads a key that signs. A file that others than its owner may read or write is no secret.
func (a *app) privateKey(path string) (*keys.Private, error) {
	text, err := a.readInput(path)
	if err != nil {
		return nil, usage("--key: %s cannot be read: %v", path, cause(err))
	}
	key, err := keys.ReadPrivate(text)
	if err != nil {
		return nil, usage("--key: %s: %v", path, err)
	}
	if path == "-" || goruntime.GOOS == "windows" { // where modes say nothing of who may read
		return key, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, usage("--key: %s cannot be read: %v", path, cause(err))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, usage("--key: %s is open to others (mode %04o): chmod 600 it, and take a new key if somebody has read it", path, mode)
	}
	return key, nil
}

// evidenceOf gives the files that lie beside a receipt, and may lie in a folder that is signed for. They cannot be part of
// its digest: the signature is made after it.
func evidenceOf(receipt, envelope string) []string {
	return []string{receipt, besideReceipt(receipt), envelopeOf(receipt, envelope)}
}

// subjectOf gives a file or a folder as it is now, without some files.
func subjectOf(path string, without []string) (attest.Subject, error) {
	info, err := os.Stat(path)
	if err != nil {
		return attest.Subject{}, cause(err)
	}
	name := filepath.Base(path)
	if info.IsDir() {
		abs, err := absolute(append([]string{path}, without...))
		if err != nil {
			return attest.Subject{}, err
		}
		digest, err := builtin.TreeDigest(context.Background(), abs[0], builtin.TreeLimits{Skip: abs[1:]})
		return attest.Tree(filepath.Base(abs[0]), digest), err
	}
	f, err := openRegular(path)
	if err != nil {
		return attest.Subject{}, cause(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return attest.Subject{}, cause(err)
	}
	return attest.File(name, [sha256.Size]byte(h.Sum(nil))), nil
}

// absolute gives paths from the root. Empty ones and standard input are left out.
func absolute(paths []string) (out []string, err error) {
	for _, path := range paths {
		if path == "" || path == "-" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// signature is what a receipt is held against: an envelope, a key and what is released.
type signature struct {
	key      *keys.Public // nil: none is wanted
	envelope string
	artifact string           // empty: not compared
	without  []string         // files in the artifact that are no part of it
	attested *attest.Attested // nil: no signature holds, or none was looked at
}

// signature says where a signature is and reads the key. What it says is read when the receipt is.
func (a *app) signature(receipt, key, envelope, artifact string) (*signature, error) {
	if envelope == "" && receipt == "-" {
		return nil, usage("a receipt from standard input needs --signature FILE")
	}
	text, err := readFile(key)
	if err != nil {
		return nil, usage("--key: %s cannot be read: %v", key, cause(err))
	}
	public, err := keys.ReadPublic(text)
	if err != nil {
		return nil, usage("--key: %s: %v", key, err)
	}
	return &signature{key: public, envelope: envelopeOf(receipt, envelope), artifact: artifact, without: evidenceOf(receipt, envelope)}, nil
}

// verify holds the envelope against a receipt, and gives the id of the key.
func (s *signature) verify(receipt []byte) (string, error) {
	envelope, err := readFile(s.envelope)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", s.envelope, cause(err))
	}
	if s.attested, err = attest.Verify(receipt, envelope, s.key); err != nil {
		return "", err
	}
	return s.attested.KeyID, nil
}

// differs says why the artifact is not what the receipt is about: what was signed for, else, where no signature is
// wanted, a folder that the run looked at.
func (s *signature) differs(r *spec.Receipt) error {
	if s.key != nil && s.attested == nil {
		return errors.New("no signature holds that could say what it should be")
	}
	now, err := subjectOf(s.artifact, s.without)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", s.artifact, err)
	case s.key == nil:
		return attest.Reviewed(r, now)
	}
	return s.attested.Of(now)
}
