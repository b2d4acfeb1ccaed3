package loader

import (
	"fmt"

	"github.com/open-multi-agent/oma/spec"
)

// YAML gives a JSON document as YAML, with its members in the order they have.
func YAML(doc []byte) ([]byte, error) { return encode(doc, true) }

// Where gives FILE:LINE of a path in a document, or the path where it has no place. An empty file is the main document.
func (s *Sources) Where(file string, p spec.Path) string {
	ds := spec.Diagnostics{{File: file, Path: p}}
	s.Place(ds)
	if ds[0].Pos.Line == 0 {
		return string(p)
	}
	return fmt.Sprintf("%s:%d", ds[0].File, ds[0].Pos.Line)
}
