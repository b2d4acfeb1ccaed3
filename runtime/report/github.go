package report

import (
	"fmt"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
)

// maxAnnotations is how many errors of one step GitHub shows; it drops the others without a word.
const maxAnnotations = 10

// github gives each reason an annotation, the last of them standing for those that GitHub would drop, and then one that sums
// up: an error like them if the verdict is a failure, else a notice.
func github(v *runtime.GateVerdict) ([]byte, error) {
	var b strings.Builder
	for i, r := range v.Reasons {
		if more := len(v.Reasons) - i; i == maxAnnotations-2 && more > 1 {
			annotate(&b, "error", "oma gate", fmt.Sprintf("and %d more reasons", more))
			break
		}
		message := line(r.Message, 4096)
		if i == 0 {
			message += "\nnext: " + next(v)
		}
		annotate(&b, "error", "oma gate: "+line(r.Code, 64), message)
	}
	command := "error"
	if v.Pass {
		command = "notice"
	}
	annotate(&b, command, "oma gate: "+passOrFail(v), fmt.Sprintf("governance %s, release %s\nintegrity %s\n%s",
		line(v.GovernanceConclusion, 64), line(v.ReleaseConclusion, 64), line(integrity(v), 200), bound(v)))
	return []byte(b.String()), nil
}

// annotate writes a workflow command. Both texts are free of control characters other than newline.
func annotate(b *strings.Builder, command, title, message string) {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	fmt.Fprintf(b, "::%s title=%s::%s\n", command, property.Replace(title), data.Replace(message))
}
