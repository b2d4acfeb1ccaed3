package routing

import (
	"fmt"
	"strings"
)

// Version names these rules on a receipt. It changes when the same goal may get another answer.
const Version = "deterministic-v1"

// The modes a decision may have.
const (
	Single = "single" // the best agent does it alone
	Team   = "team"   // several have to
)

// MaxSimpleUnits is the size, as Units counts it, up to which a goal may be simple.
const MaxSimpleUnits = 200

// maxShown bounds how many characters of a goal a decision repeats.
const maxShown = 80

// Decision says how a goal is to be worked on, and why.
type Decision struct {
	Mode  string
	Units int
	// Pattern is the first complexity pattern that the goal has, and Match the text that has it, cut in the middle when
	// it is long. Empty: none was found.
	Pattern string
	Match   string
	Reasons []string // never empty
}

// Classify judges a goal.
func Classify(goal string) Decision {
	d := Decision{Mode: Single, Units: Units(goal)}
	if d.Units > MaxSimpleUnits {
		d.Mode = Team
		d.Reasons = append(d.Reasons, fmt.Sprintf("the goal is %d units long, more than %d", d.Units, MaxSimpleUnits))
	}
	if p, found := firstPattern(goal); p != "" {
		d.Mode, d.Pattern, d.Match = Team, p, shown(found)
		d.Reasons = append(d.Reasons, fmt.Sprintf("the goal has several parts: %s in %q", p, d.Match))
	}
	if d.Mode == Single {
		d.Reasons = []string{fmt.Sprintf("the goal is %d units long, at most %d, and has no sign of several parts", d.Units, MaxSimpleUnits)}
	}
	return d
}

// shown makes one short line of text.
func shown(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxShown {
		return string(runes)
	}
	half := (maxShown - 1) / 2
	return string(runes[:half]) + "…" + string(runes[len(runes)-half:])
}
