package process

import (
	"bytes"
	"fmt"
)

// clipped keeps the first and the last keep bytes of what is written to it and counts the rest. keep is set before the
// first write; memory grows with what is written, up to twice keep.
type clipped struct {
	keep  int
	head  []byte
	tail  []byte // a ring once it has keep bytes
	next  int    // where the ring goes on
	total int64
}

func (c *clipped) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := c.keep - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head, p = append(c.head, p[:take]...), p[take:]
	}
	if room := c.keep - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail, p = append(c.tail, p[:take]...), p[take:]
	}
	if len(p) > c.keep {
		p = p[len(p)-c.keep:]
	}
	for len(p) > 0 {
		took := copy(c.tail[c.next:], p)
		c.next, p = (c.next+took)%c.keep, p[took:]
	}
	return n, nil
}

// cutSlack is how far a cut moves to fall on a line end: half a line may be half a secret, which no pattern knows.
const cutSlack = 4096

// output gives all of it, or both ends around a mark that counts what is missing.
func (c *clipped) output() Output {
	tail := append(c.tail[c.next:len(c.tail):len(c.tail)], c.tail[:c.next]...)
	if c.total <= int64(len(c.head)+len(tail)) {
		return Output{Text: string(c.head) + string(tail), Total: c.total}
	}
	head, slack := c.head, min(cutSlack, c.keep)
	if i := bytes.LastIndexByte(head[len(head)-slack:], '\n'); i >= 0 {
		head = head[:len(head)-slack+i+1]
	}
	if i := bytes.IndexByte(tail[:slack], '\n'); i >= 0 {
		tail = tail[i+1:]
	}
	missing := c.total - int64(len(head)+len(tail))
	return Output{Text: fmt.Sprintf("%s\n[... %d bytes left out ...]\n\n%s", head, missing, tail), Total: c.total, Missing: missing}
}
