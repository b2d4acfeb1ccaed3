package redact

import "strings"

// byteClass is a set of ASCII bytes: a bit for each of 0 to 63, then for each of 64 to 127.
type byteClass [2]uint64

const (
	digits  = 0x3ff << '0'
	capital = (1<<26 - 1) << ('A' - 64)
	small   = (1<<26 - 1) << ('a' - 64)
	letters = capital | small
	line    = 1 << ('_' - 64)
)

var (
	alnum      = byteClass{digits, letters}
	upper      = byteClass{digits, capital}
	nameByte   = byteClass{digits | 1<<'-', letters | line}
	keyByte    = byteClass{digits | 1<<'-' | 1<<'.', letters | line}
	hexByte    = byteClass{digits, 0x3f<<('A'-64) | 0x3f<<('a'-64)}
	base64Byte = byteClass{digits | 1<<'+' | 1<<'/' | 1<<'-', letters | line} // both alphabets
	// tokenByte is what RFC 6750 allows in a bearer token, and _.
	tokenByte = byteClass{digits | 1<<'-' | 1<<'.' | 1<<'+' | 1<<'/' | 1<<'=', letters | line | 1<<('~'-64)}
	blank     = byteClass{1<<' ' | 1<<'\t', 0}
)

func (c *byteClass) has(b byte) bool { return b < 128 && c[b>>6]>>(b&63)&1 != 0 }

// skip gives the first place from i on whose byte is not of the class.
func (c *byteClass) skip(s string, i int) int {
	for i < len(s) && c.has(s[i]) {
		i++
	}
	return i
}

func quote(b byte) bool { return b == '"' || b == '\'' || b == '`' }

// delimiter ends a value without quotes.
func delimiter(b byte) bool { return b <= ' ' || strings.IndexByte(",;]}&", b) >= 0 }

// authority says what may stand between :// and the path of a URL.
func authority(b byte) bool { return b > ' ' && strings.IndexByte("/?#\"'`<>\\", b) < 0 }
