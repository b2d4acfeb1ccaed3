package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-multi-agent/oma/policies"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// ErrStale says that a saved plan does not stand for what is there now.
var ErrStale = errors.New("stale plan")

// ReadPlan reads a saved plan. A plan that was edited, or that another version wrote with members this one does not
// know, is refused.
func ReadPlan(data []byte) (*spec.Plan, error) {
	if err := canon.Check(data); err != nil {
		return nil, err
	}
	var p spec.Plan
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("this is no plan of this version: %w", err)
	}
	if p.APIVersion != spec.APIVersion || p.Kind != spec.KindPlan {
		return nil, fmt.Errorf("this is a %q of %q, not a %s of %s", p.Kind, p.APIVersion, spec.KindPlan, spec.APIVersion)
	}
	digest, err := canon.DigestWithout("plan", data, "digest")
	if err != nil {
		return nil, err
	}
	if digest != p.Digest {
		return nil, fmt.Errorf("%w: the plan was changed after it was made: its digest is %s, it says %s", ErrStale, digest, p.Digest)
	}
	return &p, nil
}

// Moved gives the inputs of a plan that are no longer what they were. digest reads a file by its path in the plan.
func Moved(p *spec.Plan, digest func(path string) (string, error)) []string {
	var moved []string
	for _, in := range p.Inputs {
		switch now, err := digest(in.Path); {
		case err != nil:
			moved = append(moved, fmt.Sprintf("%s: %v", in.Path, err))
		case now != in.Digest:
			moved = append(moved, fmt.Sprintf("%s: the file has changed", in.Path))
		}
	}
	return moved
}

// rulesOf compiles the rules of a plan. It was compiled before, so a diagnostic here means that this program judges
// differently from the one that made the plan.
func rulesOf(p *spec.Plan, known []spec.ToolInfo) (*policies.Set, error) {
	set, diags := policies.Compile(ruleSet(p, p.Gates, known))
	if diags.HasErrors(false) {
		return nil, fmt.Errorf("%w: its rules do not compile: %s", ErrStale, diags[0].Message)
	}
	return set, nil
}
