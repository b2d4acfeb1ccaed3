package library

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.yaml
var packs embed.FS

// Names gives the names of all packs, sorted.
func Names() []string {
	files, err := fs.Glob(packs, "*"+ext)
	if err != nil {
		return nil // the pattern is right, so this does not happen
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ext)
	}
	slices.Sort(files)
	return files
}

// Get gives the text of a pack. false: there is none of this name.
func Get(name string) ([]byte, bool) {
	text, err := packs.ReadFile(name + ext)
	return text, err == nil
}

const ext = ".yaml"
