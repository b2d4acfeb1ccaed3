package runtime

import (
	"errors"
	"io"

	"github.com/open-multi-agent/oma/spec"
)

// Chained holds a receipt against its event log, line by line. nil: they agree.
func Chained(r *spec.Receipt, log io.Reader) error {
	v := emptyVerdict()
	v.log(r, log)
	if len(v.Reasons) > 0 {
		return errors.New(v.Reasons[0].Message)
	}
	return nil
}

// signed looks at the signature. One that was looked at and does not hold fails, required or not.
func (v *GateVerdict) signed(receipt []byte, o GateOptions) {
	if o.Signature == nil {
		if o.RequireSigned {
			v.broken(hintSigned, "a signature is required and none was given")
		}
		return
	}
	by, err := o.Signature(receipt)
	if err != nil {
		v.broken(hintSigned, "the receipt has no signature that holds: %v", err)
		return
	}
	v.Integrity, v.SignedBy = IntegritySigned, by
}

// artifact looks at what is to be released.
func (v *GateVerdict) artifact(r *spec.Receipt, differs func(*spec.Receipt) error) {
	if differs == nil {
		return
	}
	v.Artifact = ArtifactChecked
	if err := differs(r); err != nil {
		v.Artifact = ArtifactDiffers
		v.broken(hintShipped, "the artifact is not what the receipt is about: %v", err)
	}
}
