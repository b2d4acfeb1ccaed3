package schemas

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

// A value with too many violations gives the first of them by place, the same each time, and the last place whole.
func TestManyViolations(t *testing.T) {
	agents := make([]any, 3*MaxViolations)
	for i := range agents {
		agents[i] = map[string]any{"nme": "a", "maxTurns": 0} // three violations, two of them of the agent itself
	}
	doc := map[string]any{"apiVersion": "oma/v1", "kind": "Team", "name": "t", "agents": agents}
	first := Check(spec.KindTeam, doc)
	if len(first) < MaxViolations || len(first) > MaxViolations+1 {
		t.Fatalf("%d violations", len(first))
	}
	places := map[spec.Path]bool{}
	for _, v := range first {
		places[v.Path] = true
	}
	for i := range MaxViolations / 3 {
		if at := spec.Path("agents").Index(i); !places[at] || !places[at.Key("maxTurns")] {
			t.Errorf("%s is left out", at)
		}
	}
	for range 5 {
		if diff := cmp.Diff(first, Check(spec.KindTeam, doc)); diff != "" {
			t.Fatalf("a second look gives others\n%s", diff)
		}
	}
	v, err := Compile(spec.Schema(`{"items": {"type": "integer"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Validate(agents); len(got) != MaxViolations || got[0].Path != "[0]" {
		t.Errorf("%d violations, first %+v", len(got), got[0])
	}
}

// A message lists a few names, and Want has all.
func TestManyNames(t *testing.T) {
	doc := map[string]any{"apiVersion": "oma/v1", "kind": "Policy", "name": "p", "rules": []any{map[string]any{"name": "r", "when": "true", "action": "deny"}}}
	for i := range 5 * maxNames {
		doc[fmt.Sprintf("key%03d", i)] = 1
	}
	got := Check(spec.KindPolicy, doc)
	if len(got) != 1 || len(got[0].Want) != 5*maxNames || !strings.HasSuffix(got[0].Message, `"key019", and 80 more`) {
		t.Errorf("%+v", got)
	}
}
