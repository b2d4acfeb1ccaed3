package parts

import (
	"os"
	"testing"
)

// Installed gives the path of a program of others, by its place in the folder of the real parts.
func Installed(t testing.TB, path string) string {
	t.Helper()
	_, file := part(t, path)
	return file
}

// Large gives the path of a program that is installed only where OMA_REAL_ACP is 1: it has hundreds of megabytes. Anywhere
// else the test is skipped, loudly.
func Large(t testing.TB, path string) string {
	t.Helper()
	if os.Getenv("OMA_REAL_ACP") != "1" {
		t.Skipf("NOT TESTED AGAINST THE REAL PART: %s is large; ask for it with: OMA_REAL_ACP=1 make tools", path)
	}
	return Installed(t, path)
}
