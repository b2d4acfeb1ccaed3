package servers

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

func locked(t testing.TB) *spec.Lock {
	t.Helper()
	yes := true
	l, err := NewLock(map[string][]spec.ServerTool{
		"files": {
			{Name: "write", Description: "writes <b> & more", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`), Hints: spec.ServerHints{Destructive: &yes}},
			{Name: "read", Description: "reads", OutputSchema: json.RawMessage(`{"type":"object"}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// read reads a lock as the loader does, which looks at its schema besides.
func read(raw []byte) (*spec.Lock, error) {
	if err := canon.Check(raw); err != nil {
		return nil, err
	}
	var l spec.Lock
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	return &l, Verify(&l)
}

func TestLockComesBack(t *testing.T) {
	l := locked(t)
	text, err := Encode(l)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"writes <b> & more"`) || strings.Index(string(text), `"read"`) > strings.Index(string(text), `"write"`) {
		t.Errorf("not for people, or not sorted:\n%s", text)
	}
	back, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Errorf("another text\n%s", diff)
	}
	// offline, the tools of the lock are those of the server
	tools := Tools(back.Servers["files"].Tools)
	if len(tools) != 2 || tools[0].Name != "read" || tools[1].Name != "write" {
		t.Fatal(tools)
	}
	offered, ds := Offer("files", spec.MCPServer{Consequential: []string{"write"}}, tools)
	if len(ds) > 0 || len(offered) != 2 || !offered[1].Consequential || string(offered[1].InputSchema) != `{"type":"object","properties":{"path":{"type":"string"}}}` {
		t.Errorf("got %+v, %v", offered, ds)
	}
	if changes, err := Compare("files", tools, tools); err != nil || len(changes) > 0 {
		t.Error(changes, err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	text, err := Encode(locked(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"edited text":    {strings.Replace(string(text), "reads", "reads all", 1), `tool "read" of MCP server "files" is not what was locked`},
		"edited schema":  {strings.Replace(string(text), `"path"`, `"p"`, 1), `tool "write" of MCP server "files" is not what was locked`},
		"edited hint":    {strings.Replace(string(text), `"destructiveHint": true`, `"destructiveHint": false`, 1), `tool "write" of MCP server "files" is not what was locked`},
		"renamed":        {strings.Replace(string(text), `"name": "read"`, `"name": "rm"`, 1), `tool "rm" of MCP server "files" is not what was locked`},
		"not in order":   {strings.Replace(string(text), `"name": "write"`, `"name": "a"`, 1), `are not in order`},
		"without digest": {`{"apiVersion":"oma/v1","kind":"Lock","servers":{"a":{"tools":[{"name":"x"}]}}}`, "is not what was locked"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := NewLock(map[string][]spec.ServerTool{"a": {{Name: "x"}, {Name: "x"}}}); err == nil {
		t.Error("two tools of one name are locked")
	}
	if _, err := NewLock(map[string][]spec.ServerTool{"a": {{Name: "x", InputSchema: json.RawMessage(`{"a":1,"a":2}`)}}}); err == nil {
		t.Error("a schema that can be read in two ways is locked")
	}
}

func TestCheckAndDiff(t *testing.T) {
	l := locked(t)
	yes := true
	changes, err := Compare("files", Tools(l.Servers["files"].Tools), []spec.ServerTool{
		{Name: "write", Description: "writes <b> & more\x1b[2J", InputSchema: json.RawMessage(`{"properties":{"path":{"type":"string"}},"type":"object"}`), Hints: spec.ServerHints{ReadOnly: &yes}},
		{Name: "exec"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		line := c.Kind + " " + c.Tool
		for _, f := range c.Fields {
			line += " " + f.Field
			if f.Was == f.Is {
				t.Errorf("%s of %s has not changed", f.Field, c.Tool)
			}
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"added exec", "removed read", "changed write description annotations"}, got); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	text := Diff(changes)
	for _, want := range []string{
		"MCP server \"files\": tool \"exec\" added\n", "MCP server \"files\": tool \"read\" removed\n", "MCP server \"files\": tool \"write\" changed\n",
		`  - "writes <b> & more" (sha256:`, `  + "writes <b> & more\x1b[2J" (sha256:`, `  - "destructiveHint=true" (sha256:`, `  + "readOnlyHint=true" (sha256:`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s:\n%s", want, text)
		}
	}
	long := strings.Repeat("a", 5000)
	before, err := NewLock(map[string][]spec.ServerTool{"s": {{Name: "x", Description: long + "is" + long}}})
	if err != nil {
		t.Fatal(err)
	}
	changes, err = Compare("s", Tools(before.Servers["s"].Tools), []spec.ServerTool{{Name: "x", Description: long + "was" + long}})
	if err != nil {
		t.Fatal(err)
	}
	if text := Diff(changes); !strings.Contains(text, `aais`+"aa") || !strings.Contains(text, `aawas`+"aa") || len(text) > 1500 {
		t.Errorf("the place that differs is not shown:\n%s", text)
	}
}

func FuzzVerify(f *testing.F) {
	text, err := Encode(locked(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"apiVersion":"oma/v1","kind":"Lock","servers":{"a":{"tools":[]}}}`))
	f.Add([]byte(`{"apiVersion":"oma/v1","kind":"Lock","servers":{"a":{"tools":[{"name":"x","inputSchema":{"$ref":"file:///etc/passwd"},"digest":""}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := read(raw)
		if err != nil {
			return
		}
		text, err := Encode(l)
		if err != nil {
			t.Fatal(err)
		}
		back, err := read(text)
		if err != nil {
			t.Fatalf("what was read cannot be read again: %v\n%s", err, text)
		}
		for name := range l.Servers {
			tools := Tools(l.Servers[name].Tools)
			Offer(name, spec.MCPServer{}, tools)
			if changes, err := Compare(name, Tools(back.Servers[name].Tools), tools); err != nil || len(changes) > 0 {
				t.Errorf("%v, %v", changes, err)
			}
		}
	})
}
