package loader

import (
	"path/filepath"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Loaded is a document with its text. Of Bundle, Policy, PolicyTest and Cassette the one that belongs to Kind is set if
// the document itself fits its schema; all are nil otherwise.
//
// A Bundle may come together with errors about the files it names. Each such file is then in its map with an empty
// text, policy or cassette, so that a compiler can look for more problems. Nothing may run if there are errors.
type Loaded struct {
	Kind       string
	Bundle     *spec.Bundle
	Policy     *spec.PolicyFile
	PolicyTest *PolicyTestFile
	Cassette   *spec.CassetteFile
	Sources    *Sources // never nil
}

// PolicyTestFile is a policy test that was read. The files it names were not.
type PolicyTestFile struct {
	spec.File
	PolicyTest *spec.PolicyTest
}

// Team reads a team file and every file it names, each once.
func Team(path string) (*Loaded, spec.Diagnostics) { return fromFile(path, spec.KindTeam) }

// Cassette reads a cassette.
func Cassette(path string) (*Loaded, spec.Diagnostics) { return fromFile(path, spec.KindCassette) }

// Any reads a file of whichever kind it says it is: Team, Policy, PolicyTest or Cassette.
func Any(path string) (*Loaded, spec.Diagnostics) { return fromFile(path, "") }

// TeamBytes reads a team from bytes. name is what diagnostics call it, dir the folder its paths are relative to.
func TeamBytes(name, dir string, data []byte) (*Loaded, spec.Diagnostics) {
	return fromBytes(name, dir, data, spec.KindTeam)
}

// Read reads a document from bytes, such as standard input. An empty kind stands for whichever the document says it
// is. A team's paths are relative to the working directory.
func Read(name string, data []byte, kind string) (*Loaded, spec.Diagnostics) {
	return fromBytes(name, ".", data, kind)
}

func fromFile(path, kind string) (*Loaded, spec.Diagnostics) {
	data, problem := readFile(path)
	if problem != nil {
		problem.File = path
		return &Loaded{Sources: newSources()}, spec.Diagnostics{*problem}
	}
	return fromBytes(path, filepath.Dir(path), data, kind)
}

func fromBytes(name, dir string, data []byte, kind string) (*Loaded, spec.Diagnostics) {
	l := &Loaded{Sources: newSources()}
	doc := newDocument(name, data)
	l.Sources.docs[""] = doc
	file := spec.File{Path: filepath.Base(name), Digest: canon.Text("file", data), Text: doc.text}
	value, ds := doc.load(&kind)
	l.Kind = kind
	switch v := value.(type) {
	case *spec.Team:
		l.Bundle = &spec.Bundle{Team: v, TeamFile: file}
		f := follower{dir: dir, bundle: l.Bundle, sources: l.Sources, read: map[string]read{}}
		f.follow()
		ds = append(ds, f.ds...)
	case *spec.Policy:
		l.Policy = &spec.PolicyFile{File: file, Policy: v}
	case *spec.PolicyTest:
		l.PolicyTest = &PolicyTestFile{File: file, PolicyTest: v}
	case *spec.Cassette:
		l.Cassette = &spec.CassetteFile{File: file, Cassette: v}
	}
	l.Sources.Place(ds)
	return l, distinct(ds)
}

// distinct sorts by place and keeps one of several problems that say the same about the same place, which is what an
// anchor used more than once gives.
func distinct(ds spec.Diagnostics) spec.Diagnostics {
	ds.Sort()
	type key struct {
		file, code, message string
		pos                 spec.Pos
	}
	seen := make(map[key]bool, len(ds))
	kept := ds[:0]
	for _, d := range ds {
		k := key{d.File, d.Code, d.Message, d.Pos}
		if !seen[k] {
			seen[k] = true
			kept = append(kept, d)
		}
	}
	return kept
}
