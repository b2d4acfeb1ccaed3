package builtin

import (
	"bytes"
	"fmt"
)

// clipped keeps the first and the last keepBytes of what is written to it and counts the rest. The zero value is
// ready; memory grows with what is written, up to twice keepBytes.
type clipped struct {
	head  []byte
	tail  []byte // a ring once it has keepBytes
	next  int    // where the ring goes on
	total int64
}

func (c *clipped) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := keepBytes - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head, p = append(c.head, p[:take]...), p[take:]
	}
	if room := keepBytes - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail, p = append(c.tail, p[:take]...), p[take:]
	}
	if len(p) > keepBytes {
		p = p[len(p)-keepBytes:]
	}
	for len(p) > 0 {
		took := copy(c.tail[c.next:], p)
		c.next, p = (c.next+took)%keepBytes, p[took:]
	}
	return n, nil
}

// cutSlack is how far a cut moves to fall on a line end: half a line may be half a secret, which no pattern knows.
const cutSlack = 4096

// String gives all of it, or both ends around a mark that counts what is missing.
func (c *clipped) String() string {
	tail := append(c.tail[c.next:len(c.tail):len(c.tail)], c.tail[:c.next]...)
	if c.total <= int64(len(c.head)+len(tail)) {
		return string(c.head) + string(tail)
	}
	head := c.head
	if i := bytes.LastIndexByte(head[len(head)-cutSlack:], '\n'); i >= 0 {
		head = head[:len(head)-cutSlack+i+1]
	}
	if i := bytes.IndexByte(tail[:cutSlack], '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	missing := c.total - int64(len(head)+len(tail))
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n\n%s", head, missing, tail)
}
