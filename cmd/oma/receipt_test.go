package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whole receipts, with time and ids injected: whatever changes in what a run leaves behind is seen here.
func TestReceipts(t *testing.T) {
	for name, args := range map[string][]string{
		"satisfied": {},
		"ceiling":   {"--max-token-budget", "1000"},
		"alone":     {"--agent", "security", "--require-governance"},
	} {
		t.Run(name, func(t *testing.T) {
			receipt := filepath.Join(t.TempDir(), "receipt.json")
			args := append([]string{"run", "--state", t.TempDir(), "--receipt", receipt}, args...)
			_, errs, _ := call(t, 0, append(args, "../../testdata/receipts/review.yaml")...)
			got, err := os.ReadFile(receipt)
			if err != nil {
				t.Fatalf("%v\n%s", err, errs)
			}
			golden := filepath.Join("../../testdata/receipts", name+".json")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
