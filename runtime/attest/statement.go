package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// The names that say what is signed. PredicateType is a name and no address: nothing is fetched from there.
const (
	PayloadType   = "application/vnd.in-toto+json"
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://open-multi-agent.org/oma/receipt/v1"
)

// The digests a subject can have. A tree has a name of its own, so that nobody takes it for a hash of bytes.
const (
	algFile = "sha256"
	algTree = "omaTree"
)

// statement is an in-toto Statement v1. The module that has it as a type gives it through protobuf, whose JSON differs
// from build to build and whose numbers are floats.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

// Subject is what a statement is about: a file by the hash of its bytes, or a folder by its tree digest.
type Subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"` // one digest in hex, by how it is made
}

// predicate is what is said of the subject. All but Receipt stands on the receipt as well, for those that read no receipts.
type predicate struct {
	Receipt              map[string]string `json:"receipt"` // digest of the receipt's bytes as stored
	RunID                string            `json:"runId"`
	Team                 string            `json:"team"`
	Plan                 spec.PlanRef      `json:"plan"`
	Status               string            `json:"status"`
	GovernanceConclusion string            `json:"governanceConclusion"`
	ReleaseConclusion    string            `json:"releaseConclusion"`
	Journal              spec.JournalRef   `json:"journal"`
}

// File is the subject of a file, by the SHA-256 of its bytes.
func File(name string, sum [sha256.Size]byte) Subject {
	return Subject{name, map[string]string{algFile: hex.EncodeToString(sum[:])}}
}

// Tree is the subject of a folder, by a digest as the trees of a receipt have it.
func Tree(name, digest string) Subject {
	return Subject{name, map[string]string{algTree: strings.TrimPrefix(digest, "sha256:")}}
}

// String is the subject as a person reads it.
func (s Subject) String() string {
	for _, alg := range slices.Sorted(maps.Keys(s.Digest)) {
		return strings.TrimSpace(s.Name + " " + alg + ":" + s.Digest[alg])
	}
	return s.Name
}

// proper says that a subject has one digest, of a kind that is known and of its length.
func (s Subject) proper() bool {
	for alg, digest := range s.Digest {
		b, err := hex.DecodeString(digest)
		return len(s.Digest) == 1 && (alg == algFile || alg == algTree) && err == nil && len(b) == sha256.Size
	}
	return false
}

func (s Subject) same(t Subject) bool { return s.proper() && maps.Equal(s.Digest, t.Digest) }

// Reviewed says whether a folder is one that the run of a receipt left as it is now. It is what a receipt without a
// signature has to say of an artifact.
func Reviewed(r *spec.Receipt, artifact Subject) error {
	digest, ok := artifact.Digest[algTree]
	if !ok {
		return failed("other-artifact", "a receipt that is not signed says nothing of a file; sign it with oma receipt sign --artifact")
	}
	for _, t := range r.Trees {
		if t.Before == "" && t.Digest == "sha256:"+digest {
			return nil
		}
	}
	return failed("other-artifact", "%s is no folder that a required role looked at, or not as the run left it", artifact.Name)
}

// predicateOf says what there is to say of a receipt with these bytes.
func predicateOf(receipt []byte) (*predicate, error) {
	r, err := runtime.ReadReceipt(receipt)
	if err != nil {
		return nil, failed("receipt-damaged", "%v", err)
	}
	itself := File("", sha256.Sum256(receipt))
	return &predicate{Receipt: itself.Digest, RunID: r.RunID, Team: r.Team.Name, Plan: r.Plan, Status: r.Status.Code,
		GovernanceConclusion: r.GovernanceConclusion, ReleaseConclusion: r.ReleaseConclusion, Journal: r.Evidence.Journal}, nil
}

// readStatement reads a payload whose signature holds.
func readStatement(payload []byte) (*statement, error) {
	if err := canon.Check(payload); err != nil {
		return nil, failed("statement-malformed", "what is signed is %v", err)
	}
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, failed("statement-malformed", "what is signed is no statement about a receipt")
	}
	switch {
	case s.Type != StatementType:
		return nil, failed("statement-type", "what is signed is a %q, not a %q", s.Type, StatementType)
	case s.PredicateType != PredicateType:
		return nil, failed("predicate-type", "what is signed says %q, not %q", s.PredicateType, PredicateType)
	case len(s.Subject) != 1 || !s.Subject[0].proper():
		return nil, failed("statement-malformed", "what is signed is not about one file or folder with one digest")
	}
	return &s, nil
}
