package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func TestFileReadW6(t *testing.T) {
	b := newBox(t, map[string]string{
		"three": "a\nb\nc\n", "open": "a\nb", "empty": "", "blank": "\n", "crlf": "a\r\nb\r\n", "latin": "caf\xe9\n", "bin": "\x7fELF\x00\x01", "dir/x": "",
		"large": strings.Repeat("x", maxFile+1), "limit": strings.Repeat("x", maxFile),
	})
	b.want(FileRead, in{"path": "three"}, "1\ta\n2\tb\n3\tc")
	b.want(FileRead, in{"path": "open"}, "1\ta\n2\tb")
	b.want(FileRead, in{"path": "empty"}, "")
	b.want(FileRead, in{"path": "empty", "offset": int64(9)}, "")
	b.want(FileRead, in{"path": "blank"}, "1\t")
	b.want(FileRead, in{"path": "crlf"}, "1\ta\r\n2\tb\r")
	b.want(FileRead, in{"path": "latin"}, "1\tcaf\uFFFD")
	b.want(FileRead, in{"path": "three", "offset": int64(0), "limit": int64(3)}, "1\ta\n2\tb\n3\tc")
	b.want(FileRead, in{"path": "three", "offset": int64(2)}, "2\tb\n3\tc\n\n(showing lines 2–3 of 3)")
	b.want(FileRead, in{"path": "three", "offset": 2.0, "limit": int64(1)}, "2\tb\n\n(showing lines 2–2 of 3)")
	b.want(FileRead, in{"path": "three", "limit": int64(2)}, "1\ta\n2\tb\n\n(showing lines 1–2 of 3)")
	b.wantError(FileRead, in{"path": "three", "offset": int64(4)}, `Could not read file "three": it has 3 lines, offset 4 is beyond the end.`)
	b.wantError(FileRead, in{"path": "none"}, `Could not read file "none": no such file or directory.`)
	b.wantError(FileRead, in{"path": "three/x"}, `Could not read file "three/x": "three" is not a folder.`)
	b.wantError(FileRead, in{"path": "dir"}, `it is a folder, not a regular file`)
	b.wantError(FileRead, in{"path": "."}, `it is a folder, not a regular file`)
	b.wantError(FileRead, in{"path": "bin"}, `it is a binary file of 6 bytes`)
	b.wantError(FileRead, in{"path": "large"}, `it has 10485761 bytes, over the limit of 10485760`)
	if r := b.call(FileRead, in{"path": "limit"}); r.IsError {
		t.Error(r.Text)
	}
	want := spec.ToolResult{Text: "1\ta\n2\tb\n3\tc", FilesRead: []string{"three"}}
	if diff := cmp.Diff(want, b.call(FileRead, in{"path": b.dir + "/./three"})); diff != "" {
		t.Error(diff)
	}
	if r := b.call(FileRead, in{"path": "none"}); len(r.FilesRead) != 0 {
		t.Error("a failed read counts as one:", r.FilesRead)
	}
}

// Ten million empty lines are 10 MiB as a file and 90 MiB with numbers.
func TestFileReadIsBounded(t *testing.T) {
	b := newBox(t, map[string]string{"lines": strings.Repeat("\n", maxFile)})
	r := b.call(FileRead, in{"path": "lines"})
	if r.IsError || len(r.Text) > maxShown+100 || !strings.Contains(r.Text[len(r.Text)-100:], "of 10485760)") {
		t.Error(r.IsError, len(r.Text), r.Text[len(r.Text)-100:])
	}
}

func TestFileWriteW7(t *testing.T) {
	b := newBox(t, map[string]string{"old": "x", "dir/x": "", "script": "x", "locked": "x"})
	if err := errors.Join(os.Chmod(b.dir+"/script", 0o777), os.Chmod(b.dir+"/locked", 0o444)); err != nil {
		t.Fatal(err)
	}
	b.want(FileWrite, in{"path": "a/b/c.txt", "content": "one\ntwo\n"}, `Created "a/b/c.txt" (3 lines, 8 bytes).`)
	b.want(FileWrite, in{"path": b.dir + "/old", "content": "é"}, `Updated "old" (1 line, 2 bytes).`)
	b.want(FileWrite, in{"path": "empty", "content": ""}, `Created "empty" (1 line, 0 bytes).`)
	b.want(FileWrite, in{"path": "script", "content": "y"}, `Updated "script" (1 line, 1 bytes).`)
	b.wantFile("work/a/b/c.txt", "one\ntwo\n")
	b.wantFile("work/old", "é")
	b.wantError(FileWrite, in{"path": "dir", "content": ""}, `Could not write file "dir": it is a folder, not a regular file.`)
	b.wantError(FileWrite, in{"path": "old/x", "content": ""}, `"old" is not a folder`)
	b.wantError(FileWrite, in{"path": "locked", "content": ""}, `it is read-only`)
	b.wantError(FileWrite, in{"path": strings.Repeat("n", 300), "content": ""}, `file name too long`)
	if info, err := os.Stat(b.dir + "/script"); err != nil || info.Mode().Perm() != 0o777 {
		t.Error("the mode was not kept:", info.Mode(), err)
	}
	if got := b.call(FileWrite, in{"path": "x/../y", "content": ""}).FilesWritten; !cmp.Equal(got, []string{"y"}) {
		t.Error(got)
	}
	b.want(Glob, in{"pattern": "**/.*"}, "No files matched.") // nothing temporary is left
	if e, _ := os.ReadDir(b.dir); len(e) != 7 {
		t.Error(e)
	}
}

func TestFileEditW8(t *testing.T) {
	b := newBox(t, map[string]string{"f": "one two two", "bin": "a\x00b\xff", "big": strings.Repeat("a", 1<<20), "dir/x": ""})
	b.want(FileEdit, in{"path": "f", "old_string": "one", "new_string": "$& $1 $$ $` \\1 ${x}"}, `Replaced 1 occurrence in "f".`)
	b.wantFile("work/f", "$& $1 $$ $` \\1 ${x} two two")
	b.wantError(FileEdit, in{"path": "f", "old_string": "two", "new_string": "x"}, "`old_string` appears 2 times")
	b.want(FileEdit, in{"path": "f", "old_string": "two", "new_string": "2", "replace_all": true}, `Replaced 2 occurrences in "f".`)
	b.wantError(FileEdit, in{"path": "f", "old_string": "", "new_string": "x"}, "not found")
	b.wantError(FileEdit, in{"path": "f", "old_string": "three", "new_string": "x"}, "`old_string` was not found")
	b.wantError(FileEdit, in{"path": "none", "old_string": "a", "new_string": "b"}, `Could not read file "none": no such file or directory.`)
	b.wantError(FileEdit, in{"path": "dir", "old_string": "a", "new_string": "b"}, `Could not read file "dir": it is a folder`)
	b.want(FileEdit, in{"path": "bin", "old_string": "a", "new_string": "A"}, `Replaced 1 occurrence in "bin".`)
	b.wantFile("work/bin", "A\x00b\xff")
	b.wantError(FileEdit, in{"path": "big", "old_string": "a", "new_string": strings.Repeat("b", 1<<16), "replace_all": true}, "the result would have 68719476736 bytes")
	if got := b.call(FileEdit, in{"path": "./f", "old_string": "2 2", "new_string": "4"}).FilesWritten; !cmp.Equal(got, []string{"f"}) {
		t.Error(got)
	}
}

// D7: edits of one file never lose each other, whatever name, agent or link they come by.
func TestConcurrentEditsD7(t *testing.T) {
	b := newBox(t, map[string]string{"dir/f": "", "link": "-> dir/f", "dirlink": "-> dir"})
	var marks strings.Builder
	const n = 40
	for i := range n {
		fmt.Fprintf(&marks, "<%d>\n", i)
	}
	tree(t, b.dir, map[string]string{"dir/f": marks.String()})
	locks := &Locks{}
	var agents []map[string]runtime.Tool
	for _, dir := range []string{b.dir, b.dir + "/dir"} {
		o := testOptions(dir)
		o.Locks = locks
		agents = append(agents, openWith(t, o))
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			tools, p := agents[i%2], "f"
			if i%2 == 0 {
				p = []string{"dir/f", "link", "dirlink/f", b.dir + "/dir/f"}[i/2%4]
			}
			if r := call(tools, FileEdit, in{"path": p, "old_string": fmt.Sprintf("<%d>", i), "new_string": "done"}); r.IsError {
				t.Error(r.Text)
			}
		})
	}
	wg.Wait()
	b.wantFile("work/dir/f", strings.Repeat("done\n", n))
	if len(locks.turns) != 0 {
		t.Error("locks are left:", len(locks.turns))
	}
}

func TestLockWaitEndsWithContext(t *testing.T) {
	b := newBox(t, map[string]string{"f": "a"})
	locks := &Locks{}
	o := testOptions(b.dir)
	o.Locks = locks
	tools := openWith(t, o)
	unlock, err := locks.lock(t.Context(), b.dir+"/f")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan spec.ToolResult)
	go func() {
		got <- tools[FileWrite].Call(ctx, runtime.Invocation{Input: in{"path": "f", "content": "b"}})
	}()
	cancel()
	if r := <-got; !r.IsError || !strings.Contains(r.Text, "context canceled") {
		t.Error(r)
	}
	unlock()
	b.wantFile("work/f", "a")
	if len(locks.turns) != 0 {
		t.Error("locks are left")
	}
}
