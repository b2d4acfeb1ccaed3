package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
)

func TestArguments(t *testing.T) {
	input := map[string]any{"q": "a b; rm -rf / $(x) {n}", "n": int64(5), "f": 1.5, "big": 1e21, "whole": 5.0, "b": true, "a.b c": "x", "list": []any{}, "null": nil, "z": "a\x00b", "empty": ""}
	for _, c := range []struct {
		template, want, err string
	}{
		{"{q}", "a b; rm -rf / $(x) {n}", ""}, // a value is not looked at again
		{"--n={n},{f},{b}", "--n=5,1.5,true", ""},
		{"{big} {whole}", "1e+21 5", ""},
		{"{{q}} {{{n}}}", "{q} {5}", ""},
		{"}}{{", "}{", ""},
		{"{a.b c}", "x", ""},
		{"{empty}", "", ""},
		{"plain", "plain", ""},
		{"", "", ""},
		{"{", "", "argument 1: { is not closed; write {{ for a brace"},
		{"a}b", "", "argument 1: } closes nothing; write }} for a brace"},
		{"{a{b}", "", "argument 1: { is not closed; write {{ for a brace"},
		{"{}", "", "argument 1: {} names no property; write {{}} for braces"},
		{"{none}", "", `the input has no "none"`},
		{"{list}", "", `the value of "list" is no text, number or boolean`},
		{"{null}", "", `the value of "null" is no text, number or boolean`},
		{"{z}", "", "argument 1 would hold a zero byte, which no argument can"},
	} {
		var got []string
		cmd, err := ParseCommand([]string{"prog", c.template, "last"})
		if err == nil {
			got, err = cmd.Arguments(input)
		}
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v, want %s", c.template, err, c.err)
			}
		case err != nil || cmp.Diff([]string{c.want, "last"}, got) != "":
			t.Errorf("%s: %q, %v", c.template, got, err)
		}
	}
}

func TestURL(t *testing.T) {
	input := map[string]any{"id": "a/b?c#d%2f e&é", "n": int64(7), "dots": "..", "dot": ".", "up": "../../admin", "back": `..\x`, "semi": "..;x", "empty": "", "line": "a\r\nb", "ok": "v1.2..3", "project": "group/name"}
	for _, c := range []struct {
		url, want, err string
	}{
		{"https://h.example/items/{id}", "https://h.example/items/a%2Fb%3Fc%23d%252f%20e&%C3%A9", ""},
		{"https://h.example/items/{n}.json?q={id}&m={n}", "https://h.example/items/7.json?q=a%2Fb%3Fc%23d%252f+e%26%C3%A9&m=7", ""},
		{"https://h.example?q=x{n}y{n}&z=1", "https://h.example?q=x7y7&z=1", ""},
		{"HTTP://127.0.0.1:8080/a//b/", "http://127.0.0.1:8080/a//b/", ""},
		{"https://[::1]:8443/p/{project}/x", "https://[::1]:8443/p/group%2Fname/x", ""},
		{"https://h.example/a%20b/{ok}?x=%20", "https://h.example/a%20b/v1.2..3?x=%20", ""},
		{"https://h.example/?", "https://h.example/?", ""},
		{"https://h.example/?q={empty}", "https://h.example/?q=", ""},
		{"https://h.example/?q={line}", "https://h.example/?q=a%0D%0Ab", ""},
		{"https://h.example", "https://h.example", ""},
		{"https://h.example/a/{dots}/b", "", `a path segment would be "..", which changes the path`},
		{"https://h.example/a/{dot}", "", `a path segment would be ".", which changes the path`},
		{"https://h.example/a/{dot}{dot}", "", `a path segment would be "..", which changes the path`},
		{"https://h.example/a/.{dot}", "", `a path segment would be "..", which changes the path`},
		{"https://h.example/a/%2e{dot}", "", `a path segment would be "..", which changes the path`},
		{"https://h.example/a/{up}", "", `a path segment would be "../../admin", which changes the path`},
		{"https://h.example/a/{back}", "", `a path segment would be "..\\x", which changes the path`},
		{"https://h.example/a/{semi}", "", `a path segment would be "..;x", which changes the path`},
		{"https://h.example/a/{empty}/b", "", "a path segment would be empty, which changes the path"},
		{"https://h.example/a/{line}", "", `a path segment would hold the control character '\r'`},
		{"https://h.example/{none}", "", `the input has no "none"`},
		{"https://h.example/?q={none}", "", `the input has no "none"`},
	} {
		var got string
		a, err := ParseAddress(c.url)
		if err == nil {
			got, err = a.URL(input)
		}
		if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %q, %v\nwant %q %s", c.url, got, err, c.want, c.err)
		}
	}
	a, err := ParseAddress("https://h.example/?q={q}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.URL(map[string]any{"q": strings.Repeat("x", maxURL)}); err == nil || err.Error() != "the URL would have 65557 bytes, and 65536 is the most" {
		t.Error(err)
	}
}

// schema declares one property of each kind.
const schema = `{"type":"object","required":["q","id","list","any","word","neg","date","up","flag","key"],"properties":{
	"q":{"type":"string"},"id":{"type":"integer"},"opt":{"type":"string"},"def":{"type":"integer","default":5},"list":{"type":"array"},"any":{},
	"maybe":{"type":["string","null"],"default":"x"},"either":{"type":["string","integer"],"default":"x"},"word":{"enum":["a","b"]},"neg":{"enum":["a","-b"]},
	"date":{"type":"string","pattern":"^[0-9]{4}-"},"up":{"type":"integer","minimum":0},"flag":{"type":"boolean"},"nothing":{"enum":[null],"default":null},"key":{"type":"string","pattern":"^(?:k-|[A-Z])"}}}`

func show(ds spec.Diagnostics) (lines []string) {
	for _, d := range ds {
		lines = append(lines, fmt.Sprintf("%s %s", d.Path, d))
	}
	return lines
}

func TestCheckCommand(t *testing.T) {
	for _, c := range []struct {
		tool string // JSON, inputSchema left out
		want []string
	}{
		{`"command":["curl","--","{q}"]`, nil},
		{`"command":["jq",".a","--arg","x={q}","-n{id}"]`, nil},
		{`"command":["prog","{word}","{date}","{up}","{flag}"]`, nil},
		{`"command":["sh","-c","echo \"$1\"","sh","{word}"]`, nil},
		{`"command":["python3","tool.py","--q={q}"]`, nil},
		{`"command":["prog","{{q}}","a {{"]`, nil},
		{`"command":["prog"],"output":"json","credentials":["API_KEY","_x9"]`, nil},
		{``, []string{" a tool needs command or http [custom-tool]"}},
		{`"command":["p"],"http":{"url":"https://h"}`, []string{"http a tool has command or http, not both [custom-tool]"}},
		{`"command":[]`, []string{"command there is no program to run [custom-tool-command]"}},
		{`"command":[" ","x"]`, []string{"command there is no program to run [custom-tool-command]"}},
		{`"command":["{q}"]`, []string{"command[0] the program must be written out: a model must not choose it [custom-tool-command]"}},
		{`"command":["p","a\u0000"]`, []string{"command[1] a zero byte cannot be in an argument [custom-tool-command]"}},
		{`"command":["p","x={qq}"]`, []string{"command[1] {qq} is no property of inputSchema [custom-tool-placeholder]"}},
		{`"command":["p","{\"a\":1}"]`, []string{`command[1] {"a":1} is no property of inputSchema [custom-tool-placeholder]`}},
		{`"command":["p","x={opt}"]`, []string{"command[1] {opt} may be missing from an input [custom-tool-placeholder]"}},
		{`"command":["p","x={list}","x={any}","x={maybe}","x={nothing}","x={def}","x={either}"]`, []string{
			"command[1] {list} is not declared as text, a number or a boolean [custom-tool-placeholder]",
			"command[2] {any} is not declared as text, a number or a boolean [custom-tool-placeholder]",
			"command[3] {maybe} is not declared as text, a number or a boolean [custom-tool-placeholder]",
			"command[4] {nothing} is not declared as text, a number or a boolean [custom-tool-placeholder]"}},
		{`"command":["p","x={","x}"]`, []string{"command[1] { is not closed; write {{ for a brace [custom-tool-placeholder]", "command[2] } closes nothing; write }} for a brace [custom-tool-placeholder]"}},
		{`"command":["p","{q}","--","{q}"]`, []string{"command[1] warning: the value of {q} may begin with - and be taken for an option [custom-tool-option]"}},
		{`"command":["p","{id}","{neg}","{key}"]`, []string{
			"command[1] warning: the value of {id} may begin with - and be taken for an option [custom-tool-option]",
			"command[2] warning: the value of {neg} may begin with - and be taken for an option [custom-tool-option]",
			"command[3] warning: the value of {key} may begin with - and be taken for an option [custom-tool-option]"}},
		{`"command":["/bin/bash","-ec","--","echo {q}"]`, []string{"command[3] bash would run the value of {q} as a part of its script [custom-tool-script]"}},
		{`"command":["python3.12","-c","print('{q}')"]`, []string{"command[2] python3.12 would run the value of {q} as a part of its script [custom-tool-script]"}},
		{`"command":["node","--eval","f('{q}')"]`, []string{"command[2] node would run the value of {q} as a part of its script [custom-tool-script]"}},
		{`"command":["p"],"output":"jsn"`, []string{`output output "jsn" is not known [custom-tool]`}},
		{`"command":["p"],"credentials":["A-B","9"]`, []string{
			`credentials[0] credential "A-B" is no name of an environment variable [custom-tool-credential]`,
			`credentials[1] credential "9" is no name of an environment variable [custom-tool-credential]`}},
	} {
		checkTool(t, c.tool, c.want)
	}
}

func checkTool(t *testing.T, text string, want []string) {
	t.Helper()
	var tool spec.CustomTool
	if text != "" {
		text = "," + text
	}
	if err := json.Unmarshal([]byte(`{"inputSchema":`+schema+text+`}`), &tool); err != nil {
		t.Fatal(text, err)
	}
	if diff := cmp.Diff(want, show(Check(&tool))); diff != "" {
		t.Errorf("%s\n%s", text, diff)
	}
}

func TestCheckHTTP(t *testing.T) {
	for _, c := range []struct {
		http string
		want []string
	}{
		{`"url":"https://h.example/a/{q}?n={id}","headers":{"Authorization":{"credential":"KEY","prefix":"Bearer "},"X-A":"b"},"response":"/data/0/a~1b","method":"POST","body":"input"`, nil},
		{`"url":"http://localhost:1/","headers":{"A":{"credential":"KEY"}}`, nil},
		{`"url":"http://[::1]:1/","headers":{"A":{"credential":"KEY"}}`, nil},
		{`"url":"http://h.example/","headers":{"A":{"credential":"KEY"}}`, []string{`http.url warning: credential "KEY" would be sent unencrypted [custom-tool-http]`}},
		{`"url":"ftp://h/"`, []string{"http.url expected a URL that begins with https:// or http:// [custom-tool-http]"}},
		{`"url":"/path"`, []string{"http.url expected a URL that begins with https:// or http:// [custom-tool-http]"}},
		{`"url":"https://{q}.example/"`, []string{"http.url a placeholder must not stand in the origin; write scheme, host and port out [custom-tool-http]"}},
		{`"url":"https://h.example{q}/"`, []string{"http.url a placeholder must not stand in the origin; write scheme, host and port out [custom-tool-http]"}},
		{`"url":"{q}://h.example/"`, []string{"http.url expected a URL that begins with https:// or http:// [custom-tool-http]"}},
		{`"url":"https://u:p@h.example/"`, []string{"http.url user and password must not stand in a URL; use headers with {credential: NAME} [custom-tool-http]"}},
		{`"url":"https:///x"`, []string{`http.url "" is no host [custom-tool-http]`}},
		{`"url":"https://a b/x"`, []string{`http.url "a b" is no host [custom-tool-http]`}},
		{`"url":"https://h:99999/x"`, []string{`http.url "99999" is no port [custom-tool-http]`}},
		{`"url":"https://h/x#{q}"`, []string{"http.url a fragment is never sent; take # and what follows away [custom-tool-http]"}},
		{`"url":"https://h/a b"`, []string{"http.url spaces, braces and quotes, control characters and letters beyond ASCII must be written as %XX [custom-tool-http]"}},
		{`"url":"https://h/a%2"`, []string{`http.url "%2" is no %XX [custom-tool-http]`}},
		{`"url":"https://h/?a=%{q}"`, []string{`http.url "%" is no %XX [custom-tool-http]`}},
		{`"url":"https://h/?{q}=1"`, []string{"http.url {q} must stand in the value of a query parameter, as in name={q} [custom-tool-http]"}},
		{`"url":"https://h/?a=1&{q}"`, []string{"http.url {q} must stand in the value of a query parameter, as in name={q} [custom-tool-http]"}},
		{`"url":"https://h/{none}/{opt}/{list}?a={q"`, []string{"http.url { is not closed; write {{ for a brace [custom-tool-http]"}},
		{`"url":"https://h/{none}/{opt}?a={list}"`, []string{"http.url {none} is no property of inputSchema [custom-tool-placeholder]",
			"http.url {opt} may be missing from an input [custom-tool-placeholder]", "http.url {list} is not declared as text, a number or a boolean [custom-tool-placeholder]"}},
		{`"url":"https://h/","method":"get"`, []string{`http.method method "get" is not known [custom-tool-http]`}},
		{`"url":"https://h/","body":"input"`, []string{"http.body a GET request has no body [custom-tool-http]"}},
		{`"url":"https://h/","body":"form"`, []string{`http.body body "form" is not known [custom-tool-http]`}},
		{`"url":"https://h/","response":"data"`, []string{`http.response "data" is no JSON Pointer: it begins with /, as in /data/0/name [custom-tool-http]`}},
		{`"url":"https://h/","response":"/a~2"`, []string{`http.response "/a~2" is no JSON Pointer: ~ is written ~0, and / in a name ~1 [custom-tool-http]`}},
		{`"url":"https://h/","headers":{"A":"Bearer ${KEY}","B":"{q}","C":"}{"}`, []string{
			"http.headers.A warning: the value of header A is sent as it is written, braces included [custom-tool-header]",
			"http.headers.B warning: the value of header B is sent as it is written, braces included [custom-tool-header]"}},
		{`"url":"https://h/","headers":{"A B":"x","Host":"y","x-a":"1","X-A":"2","C":"a\r\nX: y"}`, []string{
			`http.headers["A B"] "A B" is no name of a header [custom-tool-header]`,
			"http.headers.C the value of header C has a line end or another control character [custom-tool-header]",
			"http.headers.Host header Host is the connection's own [custom-tool-header]",
			`http.headers.x-a headers "X-A" and "x-a" are the same [custom-tool-header]`}},
	} {
		checkTool(t, `"http":{`+c.http+`}`, c.want)
	}
	checkTool(t, `"http":{"url":"https://h/"},"credentials":["KEY"]`, []string{"credentials an http tool gets a credential in a header alone [custom-tool-credential]"})
}

func TestPointer(t *testing.T) {
	doc := []byte(`{"a":{"b/c":[1,{"~":1.50}]},"n":null,"":"e"}`)
	for pointer, want := range map[string]string{
		"": string(doc), "/a/b~1c/0": "1", "/a/b~1c/1/~0": "1.50", "/n": "null", "/": `"e"`,
		"/x": "/x: there is no such member", "/a/b~1c/2": "/a/b/c/2: there is no such element among 2", "/a/b~1c/-1": "/a/b/c/-1: there is no such element among 2",
		"/a/b~1c/01": "/a/b/c/01: there is no such element among 2", "/n/x": "/n/x: it is below a value that has no members",
	} {
		p, err := ParsePointer(pointer)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Find(doc)
		if text := string(got); err != nil && err.Error() != want || err == nil && text != want {
			t.Errorf("%q: %s, %v, want %s", pointer, text, err, want)
		}
	}
}

// Undeclared members are what no rule can see: they go before a call is judged.
func TestUndeclaredN11(t *testing.T) {
	drop, err := Undeclared(spec.Schema(`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{}}},"l":{"type":"array","items":{"properties":{"y":{}}}},
		"m":{"type":"object"},"o":{"properties":{"z":{}},"additionalProperties":{"type":"string"}},"p":{"properties":{"z":{}},"additionalProperties":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	in := func(extra bool) map[string]any {
		m := func(k string) map[string]any {
			if extra {
				return map[string]any{k: "1", "EXTRA": "2"}
			}
			return map[string]any{k: "1"}
		}
		v := m("b")
		delete(v, "b")
		v["a"], v["l"], v["m"], v["o"], v["p"] = m("x"), []any{m("y"), "s"}, map[string]any{"free": "3"}, map[string]any{"z": "1", "free": "3"}, m("z")
		return v
	}
	got := in(true)
	drop(got)
	if diff := cmp.Diff(in(false), got); diff != "" {
		t.Error(diff)
	}
	if _, err := Undeclared(spec.Schema("{")); err == nil {
		t.Error("a broken schema was taken")
	}
}

func TestInfo(t *testing.T) {
	tool := &spec.CustomTool{Command: []string{"x"}, Consequential: true, Idempotent: true, MaxOutputChars: 5}
	want := spec.ToolInfo{Name: "n", Description: "Custom tool: n", InputSchema: spec.Schema(noInput), Consequential: true, Idempotent: true, MaxOutputChars: 5}
	if diff := cmp.Diff(want, Info("n", tool)); diff != "" {
		t.Error(diff)
	}
	tool.Description, tool.InputSchema = "d", spec.Schema(schema)
	if got := Info("n", tool); got.Description != "d" || string(got.InputSchema) != schema {
		t.Error(got)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"{q}", "a{{b}}{q}c", "}{", "{{{q}}}", "{x}"} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, template, v string) {
		c, err := ParseCommand([]string{"p", template, "-"})
		if err != nil {
			return
		}
		args, err := c.Arguments(map[string]any{"q": v})
		if err != nil {
			return
		}
		// A template is its own value once its braces are doubled: what is put in is found again, and nothing else moved.
		plain := strings.NewReplacer("{{", "{", "}}", "}", "{q}", v).Replace(template)
		if len(args) != 2 || args[1] != "-" || args[0] != plain {
			t.Errorf("%q with %q: %q, want %q", template, v, args, plain)
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://h.example/a/{q}/b?x={q}&y=1", "https://h.example:80?x=a{q}", "http://[::1]/%2e{q}/", "https://h/{q}{q}"} {
		for _, v := range []string{"x", "..", "a/b?c#d", "%2e%2e/", "é \r\n", "@evil.example/", ";x"} {
			f.Add(s, v)
		}
	}
	f.Fuzz(func(t *testing.T, template, v string) {
		a, err := ParseAddress(template)
		if err != nil {
			return
		}
		text, err := a.URL(map[string]any{"q": v})
		if err != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q with %q: %v", template, v, err)
		}
		if origin := u.Scheme + "://" + u.Host; origin != a.Origin || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q with %q: %q is another place than %q", template, v, text, a.Origin)
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(text, a.Origin), "?")
		if n := strings.Count(path, "/"); n != len(a.segments) || u.EscapedPath() != path {
			t.Fatalf("%q with %q: path %q", template, v, path)
		}
		harmless, err := a.URL(map[string]any{"q": "x"})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := url.Parse(harmless)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(u.Query()), len(plain.Query()); got != want || strings.Count(u.RawQuery, "&") != strings.Count(plain.RawQuery, "&") {
			t.Fatalf("%q with %q: %d parameters, want %d", template, v, got, want)
		}
		if req, err := http.NewRequest("GET", text, nil); err != nil || strings.ContainsAny(req.URL.RequestURI(), " \r\n") {
			t.Fatalf("%q with %q: %v", template, v, err)
		}
	})
}

func BenchmarkURL(b *testing.B) {
	a, err := ParseAddress("https://h.example/repos/{owner}/{name}?q={q}&n={n}")
	if err != nil {
		b.Fatal(err)
	}
	input := map[string]any{"owner": "some", "name": "thing", "q": "a few words", "n": int64(5)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.URL(input); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkArguments(b *testing.B) {
	c, err := ParseCommand([]string{"prog", "--owner={owner}", "--", "{q}", "{n}"})
	if err != nil {
		b.Fatal(err)
	}
	input := map[string]any{"owner": "some", "q": "a few words", "n": int64(5)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Arguments(input); err != nil {
			b.Fatal(err)
		}
	}
}
