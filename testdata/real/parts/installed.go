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

// Large is Installed for a program of hundreds of megabytes, which is not there with OMA_REAL_ACP=0. The test is then
// skipped, loudly.
func Large(t testing.TB, path string) string {
	t.Helper()
	if os.Getenv("OMA_REAL_ACP") == "0" {
		t.Skipf("NOT TESTED AGAINST THE REAL PART: %s is left out by OMA_REAL_ACP=0", path)
	}
	return Installed(t, path)
}
