package policies

import (
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// N8: what would take seconds is not let through, and what is everyday is.
func TestRulesThatWouldNotEnd(t *testing.T) {
	big := toolInfo("big", `{"type":"object","required":["xs","content","free","rows"],"properties":{"content":{"type":"string"},
		"xs":{"type":"array","items":{"type":"string"}},"free":{"type":"object"},
		"rows":{"type":"array","maxItems":100,"items":{"type":"array","items":{"type":"integer"}}}}}`)
	doubled := strings.Repeat(`.map(a, a + a)`, 40)
	for when, refused := range map[string]bool{
		`input.xs.all(x, size(input.content) > 3)`:                                              true,
		`input.xs.all(x, double(input.content) > 3.0)`:                                          true,
		`input.xs.all(x, input.content in input.free)`:                                          true,
		`input.xs.all(x, input.free[input.content] == 1)`:                                       true,
		`input.rows.all(r, input.rows == input.rows)`:                                           true,
		`input.rows.all(r, input.rows.all(q, r == q))`:                                          true,
		`input.rows.all(r, r in input.rows)`:                                                    true,
		`input.rows.map(r, input.rows) == input.rows.map(r, input.rows)`:                        true,
		`dyn(input).xs.all(x, dyn(input) == dyn(input))`:                                        true,
		`["x"]` + doubled + `.all(s, s != "")`:                                                  true,
		`[["x"]]` + doubled + `[0].all(s, s != "")`:                                             true,
		`[{"k": "x"}]` + strings.Repeat(`.map(a, {"k": a.k + a.k})`, 40) + `.all(s, s.k != "")`: true,
		`optional.of("x")` + strings.Repeat(`.optMap(a, a + a)`, 40) + `.orValue("") != ""`:     true,
		// A sum of estimates that are not known at all does not wrap around.
		strings.Repeat(`type(input.xs) == list && `, 30) + `true`: true,

		`input == input`: false,
		`size(input.content) > 3 && input.rows == input.rows`: false,
		`input.rows.exists(r, r == [1, 2])`:                   false,
		`[1, 2] in input.rows`:                                false,
		`history.exists(c, c.toolName == toolName && has(c.input.content) && c.input.content == input.content)`: false,
	} {
		_, ds := Compile(team([]spec.ToolInfo{big}, spec.Rule{When: when, Action: "warn"}))
		if got := strings.Contains(show(ds), "[gate-cost]"); got != refused || ds.HasErrors(false) != refused {
			t.Errorf("%.90s: refused %t, want %t\n%s", when, got, refused, show(ds))
		}
	}
}

// A time zone is a file of the machine: two machines would judge differently.
func TestNoTimeZones(t *testing.T) {
	for when, refused := range map[string]bool{`timestamp("2020-01-01T00:00:00Z").getHours("Europe/Berlin") == 1`: true, `timestamp("2020-01-01T00:00:00Z").getHours() == 1`: false} {
		_, ds := Compile(team([]spec.ToolInfo{bash}, spec.Rule{When: when}))
		if ds.HasErrors(false) != refused {
			t.Errorf("%s: %s", when, show(ds))
		}
	}
}
