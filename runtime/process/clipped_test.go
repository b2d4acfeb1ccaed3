package process

import (
	"fmt"
	"strings"
	"testing"
)

func TestClipped(t *testing.T) {
	for _, size := range []int{0, 1, defaultKeep, defaultKeep + 1, 2 * defaultKeep, 2*defaultKeep + 1, 3*defaultKeep + 17, 7 * defaultKeep} {
		text := strings.Repeat("0123456789", size/10+1)[:size]
		for _, chunk := range []int{997, 64 << 10, 10 * defaultKeep} {
			c := clipped{keep: defaultKeep}
			for rest := text; len(rest) > 0; {
				n := min(chunk, len(rest))
				if wrote, err := c.Write([]byte(rest[:n])); wrote != n || err != nil {
					t.Fatal(wrote, err)
				}
				rest = rest[n:]
			}
			want := text
			if size > 2*defaultKeep {
				want = fmt.Sprintf("%s\n[... %d bytes left out ...]\n\n%s", text[:defaultKeep], size-2*defaultKeep, text[size-defaultKeep:])
			}
			if got := c.output().Text; got != want {
				t.Errorf("size %d, chunk %d: %d bytes differ from the %d wanted", size, chunk, len(got), len(want))
			}
		}
	}
}

// Half a line may be half a secret, which no pattern knows: cuts fall on line ends.
func TestClippedCutsLines(t *testing.T) {
	c := clipped{keep: defaultKeep}
	const line = "password=hunter2\n"
	text := strings.Repeat(line, 3*defaultKeep/len(line))
	c.Write([]byte(text))
	kept := 0
	for l := range strings.Lines(c.output().Text) {
		switch {
		case l == line:
			kept += len(l)
		case l != "\n" && !strings.HasPrefix(l, "[... "):
			t.Fatalf("half a line: %q", l)
		}
	}
	if !strings.Contains(c.output().Text, fmt.Sprintf("[... %d bytes left out ...]", len(text)-kept)) {
		t.Error("the count is wrong")
	}
}
