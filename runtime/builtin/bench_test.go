package builtin

import (
	"fmt"
	"strings"
	"testing"
)

func bench(b *testing.B, files map[string]string, tool string, input in) {
	dir := b.TempDir()
	tree(b, dir, files)
	tools := openWith(b, testOptions(dir))
	b.ReportAllocs()
	for b.Loop() {
		if r := call(tools, tool, input); r.IsError {
			b.Fatal(r.Text)
		}
	}
}

func source(n int) map[string]string {
	files := map[string]string{".gitignore": "*.log\n/out/\n"}
	for i := range n {
		files[fmt.Sprintf("pkg%d/sub/file%03d.go", i%20, i)] = strings.Repeat("func Name(x int) error { return nil }\n", 100)
	}
	return files
}

func BenchmarkFileRead(b *testing.B) {
	bench(b, map[string]string{"a/b/c.txt": strings.Repeat("a line of text\n", 50)}, FileRead, in{"path": "a/b/c.txt"})
}

func BenchmarkFileWrite(b *testing.B) {
	bench(b, map[string]string{"a/b/c.txt": "x"}, FileWrite, in{"path": "a/b/c.txt", "content": "text"})
}

func BenchmarkBashTrue(b *testing.B) { bench(b, nil, Bash, in{"command": "true"}) }

func BenchmarkGrepLiteral(b *testing.B) { bench(b, source(400), Grep, in{"pattern": "nowhere"}) }

func BenchmarkGrepRegexp(b *testing.B) {
	bench(b, source(400), Grep, in{"pattern": `\berr(or)? \{ panic`})
}

func BenchmarkGlob(b *testing.B) { bench(b, source(400), Glob, in{"pattern": "pkg1/**/*.go"}) }

func BenchmarkTreeDigest(b *testing.B) {
	dir := b.TempDir()
	tree(b, dir, source(400))
	for b.Loop() {
		if _, err := TreeDigest(b.Context(), dir, TreeLimits{}); err != nil {
			b.Fatal(err)
		}
	}
}
