package shell_test

import (
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/policies/shell"
)

// BenchmarkClassify: the first is what agents send most. The last three are texts of the largest size.
func BenchmarkClassify(b *testing.B) {
	for _, bb := range []struct{ name, command string }{
		{"usual", "git status && ls -la src | head -5"},
		{"one", "ls"},
		{"long", `cd /srv/app && git pull --rebase && go test ./... 2>&1 | tee out.log | tail -20 || echo "failed: $?" >&2`},
		{"script", "for f in $(find . -name '*.go' -not -path './vendor/*'); do if grep -q TODO \"$f\"; then sed -i 's/TODO/DONE/' \"$f\"; fi; done"},
		{"commands-64KiB", strings.Repeat("ls a;", 64<<10/5)},
		{"pipe-64KiB", strings.Repeat("a|", 64<<10/2-1) + "a"},
		{"words-64KiB", "echo " + strings.Repeat("a ", 32<<10-8)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				shell.Classify(bb.command, nil)
			}
		})
	}
}
