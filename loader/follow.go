package loader

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/policies/library"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// follower reads the files that a team names, each once.
type follower struct {
	dir     string // of the team file, as given
	bundle  *spec.Bundle
	sources *Sources
	read    map[string]read // by cleaned path
	ds      spec.Diagnostics
}

// read is a file as it was read. A file that could not be read has a problem.
type read struct {
	data    []byte
	problem *spec.Diagnostic
}

func (f *follower) follow() {
	b := f.bundle
	b.Prompts, b.Policies = map[string]spec.File{}, map[string]spec.PolicyFile{}
	b.Packs, b.Cassettes = map[string]spec.PolicyFile{}, map[string]spec.CassetteFile{}
	f.policies(b.Team.Gates, spec.Path("gates"))
	for i, a := range b.Team.Agents {
		at := spec.Path("agents").Index(i)
		if a.SystemPromptFile != "" {
			f.prompt(a.SystemPromptFile, at.Key("systemPromptFile"))
		}
		f.policies(a.Gates, at.Key("gates"))
	}
	for _, name := range sortedKeys(b.Team.Providers) {
		if p := b.Team.Providers[name]; p.Cassette != "" {
			f.cassette(p.Cassette, spec.Path("providers").Key(name).Key("cassette"))
		}
	}
	f.lock()
	f.programs()
}

func (f *follower) prompt(name string, at spec.Path) {
	file, data, ok := f.file(name, at)
	if ok {
		if p := notText(data); p != nil {
			f.ds.Errorf(p.Code, at, "prompt %q: %s", name, p.Message).Hint = p.Hint
		} else if strings.TrimSpace(file.Text) == "" {
			f.ds.Errorf("empty-file", at, "prompt %q is empty", name)
		}
	}
	f.bundle.Prompts[name] = file
}

func (f *follower) policies(g *spec.Gates, at spec.Path) {
	if g == nil {
		return
	}
	for i, name := range g.Packs {
		f.pack(name, at.Key("packs").Index(i))
	}
	for i, name := range g.Files {
		file, data, ok := f.file(name, at.Key("files").Index(i))
		pf := spec.PolicyFile{File: file, Policy: &spec.Policy{}}
		if v, loaded := f.document(name, data, ok, spec.KindPolicy).(*spec.Policy); loaded {
			pf.Policy = v
		}
		if pf.Policy.Limits != nil {
			f.ds.Errorf("limits-not-above", at.Key("files").Index(i), "policy %q has limits, which hold only for a policy given with --policy", name).Hint = "give it with --policy, or keep its rules in a file without limits"
		}
		f.bundle.Policies[name] = pf
	}
}

func (f *follower) pack(name string, at spec.Path) {
	if _, read := f.bundle.Packs[name]; read {
		return
	}
	pf, doc, ds, ok := pack(name)
	if !ok {
		f.ds.Errorf("unknown-pack", at, "there is no pack %q", name).Hint = spec.DidYouMean(name, library.Names())
		return
	}
	f.sources.docs[pf.Path] = doc
	f.bundle.Packs[name] = pf
	f.ds = append(f.ds, ds...)
}

func (f *follower) cassette(name string, at spec.Path) {
	file, data, ok := f.file(name, at)
	cf := spec.CassetteFile{File: file, Cassette: &spec.Cassette{}}
	if v, loaded := f.document(name, data, ok, spec.KindCassette).(*spec.Cassette); loaded {
		cf.Cassette = v
	}
	f.bundle.Cassettes[name] = cf
}

// document loads a file that was read, once for all places that name it in the same way.
func (f *follower) document(name string, data []byte, ok bool, kind string) any {
	if !ok {
		return nil
	}
	doc := newDocument(path.Join(filepath.ToSlash(f.dir), clean(name)), data)
	f.sources.docs[name] = doc
	v, ds := doc.load(&kind)
	for i := range ds {
		ds[i].File = name
	}
	f.ds = append(f.ds, ds...)
	return v
}

// file reads a file that the team file names at a place.
func (f *follower) file(name string, at spec.Path) (spec.File, []byte, bool) {
	rel := clean(name)
	file := spec.File{Path: rel}
	if p := badPath(name); p != nil {
		p.Path = at
		f.ds = append(f.ds, *p)
		return file, nil, false
	}
	got, seen := f.read[rel]
	if !seen {
		got.data, got.problem = readFile(filepath.Join(f.dir, filepath.FromSlash(rel)))
		f.read[rel] = got
	}
	if got.problem != nil {
		f.ds.Errorf(got.problem.Code, at, "%s", got.problem.Message).Hint = got.problem.Hint
		return file, nil, false
	}
	file.Digest = canon.Text("file", got.data)
	file.Text = canon.NormaliseText(string(got.data))
	return file, got.data, true
}

// clean gives a path in the form in which it goes into a plan.
func clean(name string) string { return path.Clean(name) }

var drive = regexp.MustCompile(`^[A-Za-z]:`)

// home says that a path is meant to lead to a home folder.
func home(name string) bool {
	return name == "~" || strings.HasPrefix(name, "~") && strings.Contains(name, "/")
}

// badPath refuses paths that would make a plan depend on the machine.
func badPath(name string) *spec.Diagnostic {
	switch {
	case home(name):
		p := problem("bad-path", "%s begins with ~, which only a shell takes for the home folder", quote(name))
		p.Hint = "write the path out; a folder that is called so is ./" + name
		return p
	case strings.HasPrefix(name, "/"), drive.MatchString(name):
		p := problem("absolute-path", "%s is an absolute path", quote(name))
		p.Hint = "name the file relative to the folder of the file that names it"
		return p
	case strings.Contains(name, `\`):
		p := problem("bad-path", "%s has a backslash", quote(name))
		p.Hint = "write / between folders"
		return p
	case strings.ContainsRune(name, 0):
		return problem("bad-path", "%s is no path", quote(name))
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
