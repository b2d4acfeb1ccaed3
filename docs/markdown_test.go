package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is one Markdown file. name is relative to the top of the repository, file to this folder.
type page struct {
	name   string
	file   string
	lines  []string
	blocks []block
}

// block is a fenced block of a page.
type block struct {
	at      string // file:line of its first line
	lang    string
	text    string
	section string // the nearest heading above, without marks
	marker  string // the HTML comment right above, if there is one
}

// notWhole marks a YAML block that is neither a document nor a part of a team file.
const notWhole = "<!-- not a whole file -->"

// pages reads every page a person is meant to read.
func pages(t *testing.T) []*page {
	t.Helper()
	var names []string
	for _, pattern := range []string{"../*.md", "*.md", "../examples/*.md", "../examples/teams/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if len(names) < 10 {
		t.Fatalf("only %d pages were found", len(names))
	}
	var out []*page
	for _, name := range names {
		out = append(out, readPage(t, name))
	}
	return out
}

func readPage(t *testing.T, name string) *page {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{name: filepath.Join("docs", name), file: name, lines: strings.Split(string(raw), "\n")}
	section, marker := "", ""
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		lang, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced:
			start := i + 1
			for i++; i < len(p.lines) && p.lines[i] != "```"; i++ {
			}
			if i == len(p.lines) {
				t.Fatalf("%s: the block is never closed", at(p, start))
			}
			p.blocks = append(p.blocks, block{at(p, start), lang, strings.Join(p.lines[start:i], "\n") + "\n", section, marker})
		case heading.MatchString(line):
			section = strings.ReplaceAll(heading.FindStringSubmatch(line)[2], "`", "")
		}
		switch {
		case strings.HasPrefix(line, "<!--"):
			marker = line
		case strings.TrimSpace(line) != "":
			marker = ""
		}
	}
	return p
}

var heading = regexp.MustCompile(`^(#+) (.+)$`)

func at(p *page, line int) string { return p.name + ":" + itoa(line+1) }

// prose gives the lines of a page with those of its blocks left empty, so that line numbers stay.
func (p *page) prose() []string {
	out := slices.Clone(p.lines)
	fenced := false
	for i, line := range out {
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			out[i] = ""
		}
	}
	return out
}

// under gives the lines of a section, without its subsections' being told apart.
func (p *page) under(t *testing.T, title string) []string {
	t.Helper()
	depth, from := 0, -1
	for i, line := range p.prose() {
		m := heading.FindStringSubmatch(line)
		switch {
		case m == nil:
		case from >= 0 && len(m[1]) <= depth:
			return p.lines[from:i]
		case from < 0 && strings.ReplaceAll(m[2], "`", "") == title:
			depth, from = len(m[1]), i+1
		}
	}
	if from < 0 {
		t.Fatalf("%s has no section %q", p.name, title)
	}
	return p.lines[from:]
}

var code = regexp.MustCompile("`([^`]+)`")

// rows gives the cells of the table rows that begin with code, with the name in that code first.
func rows(lines []string) (out [][]string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		cells[0] = code.FindStringSubmatch(cells[0])[1]
		out = append(out, cells)
	}
	return out
}

func firsts(table [][]string) (out []string) {
	for _, r := range table {
		out = append(out, r[0])
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks follows every relative link, to the heading where it names one.
func TestLinks(t *testing.T) {
	followed := 0
	for _, p := range pages(t) {
		for i, line := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				followed++
				target, anchor, _ := strings.Cut(m[1], "#")
				file := p.file
				if target != "" {
					file = filepath.Join(filepath.Dir(file), target)
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s: the link %s leads nowhere", at(p, i), m[1])
				} else if anchor != "" && !slices.Contains(anchors(t, file), anchor) {
					t.Errorf("%s: %s has no heading for #%s", at(p, i), file, anchor)
				}
			}
		}
	}
	if followed == 0 {
		t.Error("no page has a link")
	}
}

var dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors gives the names under which GitHub offers the headings of a page.
func anchors(t *testing.T, file string) (out []string) {
	for _, line := range readPage(t, file).prose() {
		if m := heading.FindStringSubmatch(line); m != nil {
			out = append(out, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[2]), ""), " ", "-"))
		}
	}
	return out
}
