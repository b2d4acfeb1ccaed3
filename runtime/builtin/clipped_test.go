package builtin

import (
	"fmt"
	"strings"
	"testing"
)

func TestClipped(t *testing.T) {
	for _, size := range []int{0, 1, keepBytes, keepBytes + 1, 2 * keepBytes, 2*keepBytes + 1, 3*keepBytes + 17, 7 * keepBytes} {
		text := strings.Repeat("0123456789", size/10+1)[:size]
		for _, chunk := range []int{997, 64 << 10, 10 * keepBytes} {
			var c clipped
			for rest := text; len(rest) > 0; {
				n := min(chunk, len(rest))
				if wrote, err := c.Write([]byte(rest[:n])); wrote != n || err != nil {
					t.Fatal(wrote, err)
				}
				rest = rest[n:]
			}
			want := text
			if size > 2*keepBytes {
				want = fmt.Sprintf("%s\n[... %d bytes left out ...]\n\n%s", text[:keepBytes], size-2*keepBytes, text[size-keepBytes:])
			}
			if got := c.String(); got != want {
				t.Errorf("size %d, chunk %d: %d bytes differ from the %d wanted", size, chunk, len(got), len(want))
			}
		}
	}
}

// Half a line may be half a secret, which no pattern knows: cuts fall on line ends.
func TestClippedCutsLines(t *testing.T) {
	var c clipped
	const line = "password=hunter2\n"
	text := strings.Repeat(line, 3*keepBytes/len(line))
	c.Write([]byte(text))
	kept := 0
	for l := range strings.Lines(c.String()) {
		switch {
		case l == line:
			kept += len(l)
		case l != "\n" && !strings.HasPrefix(l, "[... "):
			t.Fatalf("half a line: %q", l)
		}
	}
	if !strings.Contains(c.String(), fmt.Sprintf("[... %d bytes left out ...]", len(text)-kept)) {
		t.Error("the count is wrong")
	}
}
