// Package spec holds the documents of oma and nothing else: Team, Policy, PolicyTest and Cassette go in, Plan, Receipt and Event
// come out. It is the language reference: a field's JSON name is the key in YAML, the property in the JSON Schema and
// the word in the manual.
//
// It imports the standard library only, reads no file and decides nothing. Start at [Team], then [Plan], then
// [Receipt]. Problems in a document are [Diagnostics]; they carry a [Path], which the loader alone turns into a line
// and a column.
package spec

// APIVersion is the version of every document this program reads and writes.
const APIVersion = "oma/v1"

// The kinds of documents.
const (
	KindTeam       = "Team"
	KindPolicy     = "Policy"
	KindPolicyTest = "PolicyTest"
	KindCassette   = "Cassette"
	KindPlan       = "Plan"
	KindReceipt    = "Receipt"
	KindEvent      = "Event"
	KindLock       = "Lock"
)

// Envelope is what every document starts with.
type Envelope struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}
