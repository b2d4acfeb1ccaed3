package loader

import (
	"path/filepath"

	"github.com/open-multi-agent/oma/policies/library"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Policies are policies that stand above team files: they come from whoever runs the program, not from the team. The
// zero value is none.
type Policies struct {
	Files []spec.PolicyFile // in the order given; Path is what Sources finds the document by
	docs  map[string]*document
}

// Above reads policies that are given above team files, each once. A path may lead anywhere: it is the operator's own.
// The same text given twice counts once, so that a variable and a flag may name one policy. Two policies of one name are
// an error, since a receipt tells policies by their names.
func Above(paths []string) (*Policies, spec.Diagnostics) {
	p := &Policies{docs: map[string]*document{}}
	var all spec.Diagnostics
	given := map[string]string{} // path by digest
	named := map[string]string{} // path by policy
	for _, path := range paths {
		if path == "" {
			all.Errorf("file-missing", "", "a policy without a name").Hint = "give each --policy a file, and leave no entry of OMA_POLICY empty"
			continue
		}
		data, problem := readFile(path)
		if problem != nil {
			problem.File = path
			all = append(all, *problem)
			continue
		}
		digest := canon.Text("file", data)
		if given[digest] != "" {
			continue
		}
		given[digest] = path
		doc := newDocument(path, data)
		p.docs[aboveKey(path)] = doc
		pf, ds := doc.policy(aboveKey(path), digest)
		if name := pf.Policy.Name; named[name] != "" {
			ds.Errorf("policy-name-taken", "name", "policy %q is also the name of %s", name, quote(named[name])).Hint = "a receipt names its policies, so names must differ"
		} else if name != "" {
			named[name] = path
		}
		for i := range ds {
			ds[i].File = aboveKey(path)
		}
		all = append(all, ds...)
		p.Files = append(p.Files, pf)
	}
	p.Place(all)
	return p, distinct(all)
}

// Under puts a team under policies. Of any other document it is no concern. nil policies are none.
func (l *Loaded) Under(p *Policies) {
	if l.Bundle == nil || p == nil {
		return
	}
	l.Bundle.Above = p.Files
	for key, doc := range p.docs {
		l.Sources.docs[key] = doc
	}
}

// Place fills in the places of problems that are in policies, each under its Path.
func (p *Policies) Place(ds spec.Diagnostics) { (&Sources{p.docs}).Place(ds) }

// Pack gives a pack that the program carries. false: there is none of this name.
func Pack(name string) (spec.PolicyFile, spec.Diagnostics, bool) {
	pf, _, ds, ok := pack(name)
	return pf, ds, ok
}

func pack(name string) (spec.PolicyFile, *document, spec.Diagnostics, bool) {
	data, ok := library.Get(name)
	if !ok {
		return spec.PolicyFile{}, nil, nil, false
	}
	doc := newDocument("pack "+name, data)
	pf, ds := doc.policy(packKey(name), canon.Text("file", data))
	for i := range ds {
		ds[i].File = packKey(name)
	}
	return pf, doc, ds, true
}

// policy takes a policy from its text. One that is not valid has no rules and no name.
func (d *document) policy(path, digest string) (spec.PolicyFile, spec.Diagnostics) {
	kind := spec.KindPolicy
	v, ds := d.load(&kind)
	p, ok := v.(*spec.Policy)
	if !ok {
		p = &spec.Policy{}
	}
	return spec.PolicyFile{File: spec.File{Path: path, Digest: digest, Text: d.text}, Policy: p}, ds
}

// Documents that no team file names are kept beside those that it does. A team cannot name a path that begins with /, so
// these keys meet none.
func aboveKey(path string) string { return "//policy/" + filepath.ToSlash(path) }
func packKey(name string) string  { return "//pack/" + name }
