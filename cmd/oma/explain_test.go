package main

import (
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/docs"
)

// Every code that the page has a section for can be explained, without the next section.
func TestExplainEveryCode(t *testing.T) {
	all := codeSections(docs.Checks)
	if len(all) < 60 {
		t.Fatalf("only %d codes", len(all))
	}
	for _, s := range all {
		if !codeWord.MatchString(s.Code) || s.Text == "" || strings.Contains(s.Text, "\n## ") || strings.Contains(s.Text, "\n### ") {
			t.Errorf("section %q:\n%s", s.Code, s.Text)
		}
	}
	out, _, code := call(t, 0, "explain", all[0].Code)
	if code != 0 || out != all[0].Code+"\n\n"+all[0].Text+"\n" {
		t.Errorf("ended %d: %s", code, out)
	}
}
