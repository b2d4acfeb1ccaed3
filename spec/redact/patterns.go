package redact

import "strings"

// rules say what a text is held against beside the forms of secrets.
type rules struct {
	named func(s string, i int) span // finds the value after the separator at i
	flags bool                       // the value after a command-line flag such as --token
}

// patterns finds what looks like a secret, in order. Only the bytes in the switch are looked at twice.
func patterns(s string, r rules) []span {
	var found []span
	for i := 0; i < len(s); i++ {
		var p span
		switch s[i] {
		case '-':
			if p = dash(s, i); p.empty() && r.flags {
				p = flag(s, i)
			}
		case '_', 'K', 'S', 'z', 'J':
			p = token(s, i)
		case 'b', 'B':
			p = bearer(s, i)
		case ':':
			p = userInfo(s, i)
			if p.empty() {
				p = r.named(s, i)
			}
		case '=':
			p = r.named(s, i)
		}
		if !p.empty() {
			found = join(found, p)
			i = max(i, p.end-1)
		}
	}
	return found
}

func dash(s string, i int) span {
	if p := privateKey(s, i); !p.empty() {
		return p
	}
	return token(s, i)
}

// shape is a token that can be told by its prefix.
type shape struct {
	prefix string
	at     int // the byte of prefix that a text is searched for
	min    int // bytes after the prefix
	bytes  *byteClass
	word   bool // nothing that belongs to a word may stand before it
}

// shapes are the tokens of OpenAI and others, Stripe, GitHub, GitLab, npm, Hugging Face, AWS, Google and Slack.
var shapes = [...]shape{
	{"sk-", 2, 16, &nameByte, true},
	{"sk_live_", 2, 16, &alnum, true}, {"sk_test_", 2, 16, &alnum, true},
	{"rk_live_", 2, 16, &alnum, true}, {"rk_test_", 2, 16, &alnum, true},
	{"ghp_", 3, 20, &alnum, false}, {"gho_", 3, 20, &alnum, false}, {"ghu_", 3, 20, &alnum, false},
	{"ghs_", 3, 20, &alnum, false}, {"ghr_", 3, 20, &alnum, false},
	{"github_pat_", 6, 20, &nameByte, false},
	{"glpat-", 5, 16, &nameByte, false},
	{"npm_", 3, 30, &alnum, true}, {"hf_", 2, 30, &alnum, true},
	{"AKIA", 1, 16, &upper, false}, {"ASIA", 1, 16, &upper, false},
	{"AIza", 2, 30, &nameByte, false},
	{"xoxb-", 4, 10, &nameByte, false}, {"xoxa-", 4, 10, &nameByte, false}, {"xoxp-", 4, 10, &nameByte, false},
	{"xoxr-", 4, 10, &nameByte, false}, {"xoxs-", 4, 10, &nameByte, false}, {"xoxe-", 4, 10, &nameByte, false},
	{"xapp-", 4, 10, &nameByte, false},
}

// token finds a token whose prefix has its telling byte at i.
func token(s string, i int) span {
	if s[i] == 'J' {
		return jwt(s, i-2)
	}
	for k := range shapes {
		sh := &shapes[k]
		start := i - sh.at
		if sh.prefix[sh.at] != s[i] || start < 0 || !strings.HasPrefix(s[start:], sh.prefix) {
			continue
		}
		if sh.word && inWord(s, start) {
			continue
		}
		body := start + len(sh.prefix)
		if end := sh.bytes.skip(s, body); end-body >= sh.min {
			return span{start, end}
		}
	}
	return span{}
}

// jwt finds a signed or encrypted JSON Web Token, also one whose end is missing. It starts a run of its bytes, so that
// no run is read twice.
func jwt(s string, start int) span {
	if start < 0 || !strings.HasPrefix(s[start:], "eyJ") || inWord(s, start) || start > 0 && s[start-1] == '-' {
		return span{}
	}
	end := nameByte.skip(s, start)
	if end-start < 10 || end == len(s) || s[end] != '.' {
		return span{}
	}
	payload := nameByte.skip(s, end+1)
	if payload-end < 4 {
		return span{}
	}
	for end = payload; end < len(s) && s[end] == '.'; {
		end = nameByte.skip(s, end+1)
	}
	return span{start, end}
}

// privateKey finds a PEM block that holds a private key. One without an end reaches to the end of the text.
func privateKey(s string, i int) span {
	const begin, dashes, label = "-----BEGIN ", "-----", 64
	if !strings.HasPrefix(s[i:], begin) {
		return span{}
	}
	head := s[i+len(begin) : min(len(s), i+len(begin)+label)]
	if n := strings.Index(head, dashes); n >= 0 {
		head = head[:n]
	}
	if !strings.Contains(head, "PRIVATE KEY") {
		return span{}
	}
	body := i + len(begin) + len(head)
	n := strings.Index(s[body:], "-----END ")
	if n < 0 {
		return span{i, len(s)}
	}
	tail := body + n + len("-----END ")
	if n = strings.Index(s[tail:min(len(s), tail+label)], dashes); n < 0 {
		return span{i, len(s)}
	}
	return span{i, tail + n + len(dashes)}
}

// bearer finds the credential after the word bearer.
func bearer(s string, i int) span {
	const word, least = len("bearer"), 8
	if len(s)-i <= word || !strings.EqualFold(s[i:i+word], "bearer") || inWord(s, i) {
		return span{}
	}
	start := blank.skip(s, i+word)
	end := tokenByte.skip(s, start)
	if start == i+word || end-start < least {
		return span{}
	}
	return span{start, end}
}

// userInfo finds user and password in a URL whose colon is at i. A user alone is a secret only where it may be a
// token: in http and https.
func userInfo(s string, i int) span {
	if !strings.HasPrefix(s[i:], "://") {
		return span{}
	}
	start := i + len("://")
	at := -1
	for k := start; k < len(s) && authority(s[k]); k++ {
		if s[k] == '@' {
			at = k
		}
	}
	if at <= start {
		return span{}
	}
	web := hasSuffixFold(s[:i], "http") || hasSuffixFold(s[:i], "https")
	if !web && !strings.Contains(s[start:at], ":") {
		return span{}
	}
	return span{start, at}
}

// inWord says that what starts at i is the rest of a word. An escape such as \n or %3D is no part of one.
func inWord(s string, i int) bool {
	if i == 0 || !alnum.has(s[i-1]) && s[i-1] != '_' {
		return false
	}
	return !escaped(s, i-1)
}

// escaped says that the byte at i ends \n, \r, \t or an escape of a URL.
func escaped(s string, i int) bool {
	letter := i > 0 && s[i-1] == '\\' && (s[i] == 'n' || s[i] == 'r' || s[i] == 't')
	return letter || i > 1 && s[i-2] == '%' && hexByte.has(s[i]) && hexByte.has(s[i-1])
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}
