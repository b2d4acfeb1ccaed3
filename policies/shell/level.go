package shell

import (
	"fmt"
	"strings"
)

// Level says how risky one simple command is, in place of what is built in.
type Level struct {
	// Match are the leading words of the command, literal: the name without its directory, then arguments. A name that
	// holds a slash is compared with the path as written. Wrappers are looked through: [go, test] matches
	// timeout 5 go test.
	Match  []string
	Level  string // Safe, Review or High
	Reason string // of the finding. Empty: says that a level was set
	// Override lets Level stand below a built-in high. Without it, a high that is built in stays.
	Override bool
}

// Worse says whether level a is above level b. A word that is no level is above all.
func Worse(a, b string) bool { return rank(a) > rank(b) }

func rank(level string) int {
	switch level {
	case Safe:
		return 0
	case Review:
		return 1
	case High:
		return 2
	}
	return 3
}

// CheckLevel says what is wrong with a level. nil: nothing. It refuses a level that could never take effect: below the
// high of a command that is high in every form, without Override.
func CheckLevel(l Level) error {
	switch {
	case rank(l.Level) > rank(High):
		return fmt.Errorf("level %q is none of %s, %s, %s", l.Level, Safe, Review, High)
	case len(l.Match) == 0 || l.Match[0] == "":
		return fmt.Errorf("match is empty: want the words a command starts with")
	case strings.ContainsAny(l.Match[0], " \t"):
		return fmt.Errorf("match holds %q: want one word each, [%s]", l.Match[0], strings.Join(strings.Fields(l.Match[0]), ", "))
	}
	for _, w := range l.Match {
		if strings.ContainsAny(w, "\x00\n") {
			return fmt.Errorf("match holds %q: want one word each", w)
		}
	}
	name := l.Match[0][strings.LastIndexByte(l.Match[0], '/')+1:]
	if _, ok := destroys(name); ok && l.Level != High && !l.Override {
		return fmt.Errorf("%q is always %s, which level %q does not lower without override", l.Match[0], High, l.Level)
	}
	return nil
}
