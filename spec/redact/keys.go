package redact

import (
	"slices"
	"strings"
)

// maxKey bounds the bytes of a key that are looked at: the last ones.
const maxKey = 128

// SensitiveKey says whether a member, variable, header or flag of this name holds a secret. A name is read as words:
// apiKey, api_key and X-Api-Key are alike. A later word can say that it is about a secret only (token_budget,
// passwordFile), and so can the word before token (max_token). tokens, like every other count, is no secret.
func SensitiveKey(name string) bool {
	var w words
	w.split(name[max(0, len(name)-maxKey):])
	text := string(w.text[:w.len])
	var hit bool
	var prev string
	start := 0
	for _, end := range w.ends[:w.n] {
		word := text[start:int(end)]
		start = int(end)
		switch {
		case hit && about(word):
			hit = false
		case word == "token" && counted(prev):
		case secretWord(word), word == "pwd", keyWord(word) && keyOwner(prev), word == "pass" && passOwner(prev):
			hit = true
		}
		prev = word
	}
	return hit || strings.HasSuffix(text, "password") // passWord
}

// words is a name cut into lower-case words. Digits are left out.
type words struct {
	text [maxKey]byte
	len  int
	ends [maxKey]uint8
	n    int
}

// split cuts at every byte that is no letter and where a capital starts a word: apiKey, APIKey.
func (w *words) split(name string) {
	lower := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'a' && name[i] <= 'z' }
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	for i := range len(name) {
		if !lower(i) && !upper(i) {
			w.end()
			continue
		}
		if upper(i) && (lower(i-1) || upper(i-1) && lower(i+1)) {
			w.end()
		}
		w.text[w.len] = name[i] | 0x20
		w.len++
	}
	w.end()
}

func (w *words) end() {
	if w.n == 0 && w.len > 0 || w.n > 0 && w.len > int(w.ends[w.n-1]) {
		w.ends[w.n] = uint8(w.len)
		w.n++
	}
}

// secretWord says that a word names a secret. Run together with a word before it, it still does: PGPASSWORD.
func secretWord(w string) bool {
	for _, stem := range [...]string{"password", "passwd", "passphrase", "token", "secret", "apikey", "secretkey",
		"privatekey", "accesskey", "credential", "authorization", "cookie", "bearer"} {
		if strings.HasSuffix(w, stem) {
			return true
		}
	}
	switch w {
	case "passwords", "secrets", "apikeys", "credentials", "cookies":
		return true
	}
	return false
}

func keyWord(w string) bool { return w == "key" || w == "keys" }

// keyOwner says which keys are secret: not public, primary, cache or foreign ones.
func keyOwner(w string) bool {
	switch w {
	case "api", "private", "access", "secret", "signing", "encryption", "auth", "session", "ssh", "master", "license",
		"subscription", "account", "shared":
		return true
	}
	return false
}

// passOwner tells DB_PASS from a count of tests that pass.
func passOwner(w string) bool {
	switch w {
	case "db", "user", "admin", "root", "smtp", "mail", "ftp", "proxy", "mysql", "pg", "redis":
		return true
	}
	return false
}

// counted says that a token of this kind is a token of a language model.
func counted(w string) bool {
	switch w {
	case "max", "min", "num", "per", "total", "input", "output", "prompt", "completion", "cached", "reasoning",
		"special", "stop", "eos", "bos", "pad", "unk", "sep", "cls", "mask":
		return true
	}
	return false
}

// about says that a word after a secret's name makes it the name of something else.
func about(w string) bool {
	_, found := slices.BinarySearch(aboutWords[:], w)
	return found
}

// aboutWords is sorted.
var aboutWords = [...]string{"age", "budget", "cost", "count", "counts", "dir", "disabled", "enabled", "endpoint", "env",
	"error", "errors", "exp", "expiration", "expires", "expiry", "field", "file", "files", "format", "helper", "in",
	"index", "invalid", "kind", "length", "limit", "limits", "max", "min", "missing", "name", "names", "parser", "path",
	"paths", "policy", "position", "present", "price", "prompt", "provider", "rate", "reader", "ref", "refs", "required",
	"scope", "scopes", "set", "size", "status", "stdin", "store", "ttl", "type", "types", "uri", "uris", "url", "urls",
	"usage", "use", "used", "valid", "var", "version"}

// header says that a key's value is all the rest of its line, as in an HTTP header.
func header(name string) bool {
	return hasSuffixFold(name, "authorization") || hasSuffixFold(name, "cookie")
}

// folder says that a key and its value are the working directory: PWD=/srv.
func folder(name, value string) bool {
	if !strings.EqualFold(name, "pwd") || value == "" {
		return false
	}
	drive := len(value) > 2 && value[1] == ':' && value[2] == '\\'
	return drive || value[0] == '/' || value[0] == '~' || value[0] == '.'
}
