package redact

import "strings"

// lookBack bounds the blanks between a key and its separator.
const lookBack = 32

// key is the name before a separator.
type key struct {
	name  string
	start int
	query bool // in the query of a URL
	// closed: the name stands in quotes of its own, as in JSON.
	closed bool
	// own is the quote that stands right before the name and is not closed after it, as in -H 'X-Api-Key: …'; level
	// is the number of backslashes before it.
	own   byte
	level int
}

// keyed finds the value after the separator at i: key=value, key: value, "key": "value", key => value and the like.
func keyed(s string, i int) span {
	if i > 0 && s[i-1] == ':' || i+1 < len(s) && s[i] == ':' && s[i+1] == ':' {
		return span{}
	}
	k := keyBefore(s, i)
	if !k.sensitive() {
		return span{}
	}
	limit := len(s)
	if k.own != 0 {
		limit = i + closer(s[i:], k.own, k.level)
	}
	start := i + 1
	for start < limit && (s[start] == '=' || s[start] == '>' || s[start] == '~') {
		start++
	}
	start = blank.skip(s[:limit], start)
	if k.closed { // JSON may break the line here
		start += len(s[start:limit]) - len(strings.TrimLeft(s[start:limit], " \t\r\n"))
	}
	if start >= limit || folder(k.name, s[start:limit]) {
		return span{}
	}
	wide := !k.query && (header(k.name) || startsLine(s, k) && start > i+1 && s[start-1] <= ' ')
	return value(s[:limit], start, wide)
}

// keyBefore reads backwards from a separator. No name: the zero value.
func keyBefore(s string, i int) key {
	end, closed := i, false
	if end > 0 && strings.IndexByte("+?", s[end-1]) >= 0 { // += and ?=
		end--
	}
	for end > 0 && i-end < lookBack && blank.has(s[end-1]) {
		end--
	}
	if end > 1 && s[end-1] == ']' && quote(s[end-2]) { // config["password"] =
		end--
	}
	if end > 0 && quote(s[end-1]) {
		closed = true
		for end--; end > 0 && s[end-1] == '\\'; {
			end--
		}
	}
	start := nameStart(s, end)
	if strings.EqualFold(s[start:end], "key") && start > 0 && s[start-1] == ' ' { // Secret access key: …
		start = nameStart(s, start-1)
	}
	if closed && ruleName(s[:start]) {
		return key{}
	}
	k := key{name: strings.Trim(s[start:end], "-."), start: start, closed: closed}
	if start > 0 {
		k.query = s[start-1] == '?' || s[start-1] == '&'
		if quote(s[start-1]) && !closed {
			k.own, k.level = s[start-1], backslashes(s, start-1)
		}
	}
	return k
}

// ruleName says that a quoted name behind the text is that of a rule or a requirement, as messages of ours have it: what
// follows is a reason, whatever the rule is called.
func ruleName(before string) bool {
	if n := len(before); n > 0 && quote(before[n-1]) {
		before = strings.TrimRight(before[:n-1], `\`)
		return strings.HasSuffix(before, "rule ") || strings.HasSuffix(before, "requirement ")
	}
	return false
}

func nameStart(s string, end int) int {
	start := end
	for start > 0 && end-start < maxKey && keyByte.has(s[start-1]) {
		start--
	}
	if start < end && escaped(s, start) {
		start++
	}
	return start
}

func (k key) sensitive() bool {
	if k.query && (strings.EqualFold(k.name, "key") || strings.EqualFold(k.name, "sig")) {
		return true
	}
	return len(k.name) > 2 && SensitiveKey(k.name)
}

// startsLine says that nothing but marks of lists, quotations and patches stands before a key on its line. Its value
// may then hold spaces.
func startsLine(s string, k key) bool {
	i := k.start
	if k.own != 0 {
		return true
	}
	for i > 0 && k.start-i < lookBack && strings.IndexByte(" \t-+>#*", s[i-1]) >= 0 {
		i--
	}
	return i == 0 || s[i-1] == '\n'
}

// value finds the value that starts at i, without its quotes. A wide one reaches to the end of its line, another one to
// the next blank or delimiter.
func value(s string, i int, wide bool) span {
	if open, level := opener(s, i); open >= 0 {
		return quoted(s, i, open, level)
	}
	if s[i] == '[' || s[i] == '{' {
		return span{i, bracketed(s, i)}
	}
	if wide {
		end := len(s)
		if n := strings.IndexAny(s[i:], "\r\n"); n >= 0 {
			end = i + n
		}
		return span{i, i + len(strings.TrimRight(s[i:end], " \t"))}
	}
	return span{i, bare(s, i)}
}

// opener finds the quote that opens a value, after at most two letters as in b"…" and $'…'. -1: none.
func opener(s string, i int) (open, level int) {
	for k := i; k < len(s) && k < i+3; k++ {
		n := k
		for n < len(s) && s[n] == '\\' {
			n++
		}
		if n < len(s) && quote(s[n]) {
			return n, n - k
		}
		if strings.IndexByte("bBrRuUfF$@", s[k]) < 0 {
			break
		}
	}
	return -1, 0
}

// quoted finds a value in quotes. Text that follows the closing quote at once belongs to the value, as in a shell; a
// value that is not closed reaches to the end.
func quoted(s string, start, open, level int) span {
	inner := open + 1
	end := inner + closer(s[inner:], s[open], level)
	if end == len(s) {
		return span{inner, end}
	}
	if s[open] == '\'' {
		end = continued(s, end)
	}
	after := end + level + 1
	if after > len(s) || s[end+level:after] != s[open:open+1] { // closed by a quote of fewer backslashes
		return span{inner, end}
	}
	if tail := bare(s, after); tail > after && s[after] != ':' {
		return span{start, tail}
	}
	return span{inner, end}
}

// continued goes on from the end of a text in single quotes where a shell's way to write a single quote inside one
// follows: it'\”s or it'"'"'s.
func continued(s string, end int) int {
	for end < len(s) {
		rest := s[end:]
		switch {
		case strings.HasPrefix(rest, `'\''`):
			end += 4
		case strings.HasPrefix(rest, `'"'"'`):
			end += 5
		default:
			return end
		}
		end += closer(s[end:], '\'', 0)
	}
	return end
}

// closer gives the place of the quote that closes a text opened by a quote after level backslashes, or the length of
// the text. Its backslashes belong to it. A quote of fewer backslashes ends an enclosing text, and so this one.
func closer(s string, q byte, level int) int {
	for i := 0; i < len(s); i++ {
		if s[i] != q {
			continue
		}
		n := backslashes(s, i)
		if n < level {
			return i - n
		}
		if n%(2*(level+1)) == level {
			return i - level
		}
	}
	return len(s)
}

func backslashes(s string, i int) int {
	n := 0
	for n < i && s[i-1-n] == '\\' {
		n++
	}
	return n
}

// bracketed gives the end of a list or an object, or the end of the text.
func bracketed(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			level := backslashes(s, i)
			i += 1 + closer(s[i+1:], '"', level) + level
		}
	}
	return len(s)
}

// bare gives the end of a value without quotes. A quote ends it only if nothing but a delimiter follows, so that
// pass"word" is one value.
func bare(s string, i int) int {
	for ; i < len(s); i++ {
		switch {
		case delimiter(s[i]):
			return i
		case quote(s[i]) && (i+1 == len(s) || delimiter(s[i+1]) || quote(s[i+1]) || s[i+1] == ':' || s[i+1] == ')'):
			return i - backslashes(s, i)
		}
	}
	return i
}

// flag finds the value after the command-line flag at i: --key value, "--key", "value".
func flag(s string, i int) span {
	if i > 0 && (keyByte.has(s[i-1]) || s[i-1] == '/') {
		return span{}
	}
	start := i
	for start < len(s) && start < i+2 && s[start] == '-' {
		start++
	}
	end := start
	for end < len(s) && end-start < maxKey && keyByte.has(s[end]) {
		end++
	}
	if end-start < 3 || !SensitiveKey(s[start:end]) {
		return span{}
	}
	next := nextWord(s, end)
	if next == end || next >= len(s) || s[next] == '-' || folder(s[start:end], s[next:]) {
		return span{}
	}
	if open, _ := opener(s, next); open >= 0 && open+1 < len(s) && s[open+1] == '-' {
		return span{}
	}
	return value(s, next, false)
}

// nextWord gives the start of the word after a flag's name: after blanks, a comma, an escaped line end or the mark of
// the next element of a YAML list. The end itself: there is none.
func nextWord(s string, end int) int {
	i := end
	for i < len(s) && s[i] == '\\' {
		i++
	}
	if i < len(s) && quote(s[i]) {
		i++
	} else if i = end; i < len(s) && !delimiter(s[i]) && s[i] != '\\' {
		return end
	}
	blanks := i
	i = blank.skip(s, i)
	rest := s[i:]
	for _, sep := range [...]string{",", "\\\n", "\n"} {
		if after, ok := strings.CutPrefix(rest, sep); ok {
			after = strings.TrimLeft(after, " \t\r\n")
			if sep == "\n" {
				if after, ok = strings.CutPrefix(after, "- "); !ok {
					return end
				}
			}
			return len(s) - len(after)
		}
	}
	if i == blanks {
		return end
	}
	return i
}
