package builtin

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// reason is why a search leaves something out.
type reason int

const (
	notOmitted reason = iota
	byName            // see skipped
	byRule            // of a .gitignore file
	unfinished        // has the name of a file that is being written
)

// omitted counts what a search left out, so that its result can say it: whoever makes a change can also choose its
// names and its .gitignore files, and must not hide a file with them. A folder counts as one, whatever it holds.
type omitted struct {
	files, folders            int            // byRule
	named                     map[string]int // byName; there are only as many names as skipped knows
	links, binary, unfinished int
}

func (o *omitted) add(e fs.DirEntry, why reason) {
	switch {
	case why == byName:
		if o.named == nil {
			o.named = map[string]int{}
		}
		o.named[e.Name()]++
	case why == unfinished:
		o.unfinished++
	case e.IsDir():
		o.folders++
	default:
		o.files++
	}
}

// String lists what was left out, always in the same order. Empty: nothing.
func (o *omitted) String() string {
	var parts []string
	var ignored []string
	if o.files > 0 {
		ignored = append(ignored, counted(o.files, "file"))
	}
	if o.folders > 0 {
		ignored = append(ignored, counted(o.folders, "folder"))
	}
	if len(ignored) > 0 {
		parts = append(parts, inWords(ignored)+" by .gitignore")
	}
	if len(o.named) > 0 {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(o.named)) {
			if n := o.named[name]; n > 1 {
				name = fmt.Sprintf("%s (%d)", name, n)
			}
			names = append(names, name)
		}
		parts = append(parts, "folder"+plural(len(names))+" "+inWords(names))
	}
	for _, c := range []struct {
		n    int
		what string
	}{{o.links, "link"}, {o.binary, "binary file"}, {o.unfinished, "unfinished " + tempPrefix + " file"}} {
		if c.n > 0 {
			parts = append(parts, counted(c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

func counted(n int, what string) string { return fmt.Sprintf("%d %s%s", n, what, plural(n)) }

// inWords joins as a sentence does: a, b and c.
func inWords(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
