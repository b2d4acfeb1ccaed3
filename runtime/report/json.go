package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/open-multi-agent/oma/runtime"
)

// document is the verdict as it is. Only within strings can anything stand that needs escaping, and there JSON has an
// escape for it that every reader undoes.
func document(v *runtime.GateVerdict) ([]byte, error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the verdict cannot be written as JSON: %w", err)
	}
	var b strings.Builder
	for _, r := range string(raw) {
		if hidden(r) {
			b.WriteString(unicodeEscape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return []byte(disarm(b.String(), unicodeEscape) + "\n"), nil
}

func unicodeEscape(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
