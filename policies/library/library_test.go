package library

import (
	"bytes"
	"slices"
	"testing"
)

func TestNames(t *testing.T) {
	names := Names()
	if !slices.Contains(names, "read-only") || !slices.IsSorted(names) {
		t.Fatalf("got %v", names)
	}
	for _, name := range names {
		text, ok := Get(name)
		if !ok || !bytes.Contains(text, []byte("\nname: "+name+"\n")) {
			t.Errorf("pack %s: found %v, and it does not call itself so", name, ok)
		}
	}
}

func TestGetNothing(t *testing.T) {
	for _, name := range []string{"", "read-onl", "../library/read-only", "read-only.yaml", "*"} {
		if _, ok := Get(name); ok {
			t.Errorf("there is a pack %q", name)
		}
	}
}
