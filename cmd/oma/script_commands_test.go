package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/open-multi-agent/oma/spec/canon"
)

// decodeOne reads the one JSON value that data must be, with nothing after it.
func decodeOne(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the JSON value")
	}
	return v, nil
}

// member gives what a path such as tasks.0.status leads to in a document.
func member(v any, path string) (any, bool) {
	for _, key := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// value holds one member of a JSON file: [!] value FILE PATH [WANT…]. FILE must be one JSON value and nothing else. Each
// WANT is JSON, or else text; one of them must be the member. None: it must be there, or with ! must not.
func value(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg && len(args) > 2 {
		ts.Fatalf("usage: [!] value FILE PATH [WANT…]")
	}
	doc, err := decodeOne([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	got, ok := member(doc, args[1])
	if ok == neg {
		ts.Fatalf("%s has %s: %v, want %v (%v)", args[0], args[1], ok, !neg, got)
	}
	for _, want := range args[2:] {
		w, err := decodeOne([]byte(want))
		if err != nil {
			w = want
		}
		if reflect.DeepEqual(got, w) {
			return
		}
	}
	if len(args) > 2 {
		ts.Fatalf("%s: %s is %v, want %s", args[0], args[1], got, strings.Join(args[2:], " or "))
	}
}

// jsonlines wants a file of JSON values, one a line: jsonlines FILE [LAST], where LAST is written to, the last of them.
func jsonlines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: jsonlines FILE [LAST]")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	for i, line := range lines {
		if _, err := decodeOne([]byte(line)); err != nil {
			ts.Fatalf("%s: line %d is no JSON value: %v: %q", args[0], i+1, err, line)
		}
	}
	if len(args) == 2 {
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(lines[len(lines)-1]), 0o644))
	}
}

// forge edits a receipt or a plan as somebody would who wants another result: forge [-seal] FILE PATH [JSON]. Without
// JSON the member is cut out. -seal computes the document's digest again, as whoever knows how it is made can.
func forge(ts *testscript.TestScript, neg bool, args []string) {
	seal := len(args) > 0 && args[0] == "-seal"
	if seal {
		args = args[1:]
	}
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: forge [-seal] FILE PATH [JSON]")
	}
	v, err := decodeOne([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	doc, ok := v.(map[string]any)
	if !ok {
		ts.Fatalf("%s is no document", args[0])
	}
	cut := len(args) == 2
	var to any
	if !cut {
		to, err = decodeOne([]byte(args[2]))
		ts.Check(err)
	}
	if !put(doc, strings.Split(args[1], "."), to, cut) {
		ts.Fatalf("%s has no %s", args[0], args[1])
	}
	if seal {
		ts.Check(reseal(doc))
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o644))
}

// put sets or cuts out the member at a path of a map, and says whether its parent is there.
func put(at map[string]any, path []string, to any, cut bool) bool {
	key := path[0]
	if len(path) == 1 {
		if cut {
			delete(at, key)
		} else {
			at[key] = to
		}
		return true
	}
	if list, ok := at[key].([]any); ok {
		i, err := strconv.Atoi(path[1])
		if err != nil || i < 0 || i >= len(list) {
			return false
		}
		switch {
		case len(path) > 2:
			inner, ok := list[i].(map[string]any)
			return ok && put(inner, path[2:], to, cut)
		case cut:
			at[key] = append(list[:i:i], list[i+1:]...)
		default:
			list[i] = to
		}
		return true
	}
	inner, ok := at[key].(map[string]any)
	return ok && put(inner, path[1:], to, cut)
}

func reseal(doc map[string]any) error {
	holder, domain, path := doc, "plan", []string{"digest"}
	if evidence, ok := doc["evidence"].(map[string]any); ok {
		holder, domain, path = evidence, "receipt", []string{"evidence", "digest"}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	holder["digest"], err = canon.DigestWithout(domain, raw, path...)
	return err
}

// mockserver starts a server that stands for a provider of models: mockserver VAR STATUS [LOCATION]. Its address goes to the
// variable VAR. With a status of 400 and above it sends back the key and the address it was asked with, as some servers
// do; with 200 it answers "done". Every request is a line of the file VAR.log.
func mockserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: mockserver VAR STATUS [LOCATION]")
	}
	status, err := strconv.Atoi(args[1])
	ts.Check(err)
	log := ts.MkAbs(args[0] + ".log")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			fmt.Fprintf(f, "%s %s\n", r.Method, r.URL)
			f.Close()
		}
		w.Header().Set("Content-Type", "application/json")
		if len(args) == 3 {
			w.Header().Set("Location", args[2])
		}
		w.WriteHeader(status)
		var body any
		if status >= 400 {
			key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			body = map[string]any{"error": map[string]any{"message": fmt.Sprintf("bad key %s for http://%s%s", key, r.Host, r.URL), "type": "invalid_request_error"}}
		} else {
			body = map[string]any{"id": "c1", "object": "chat.completion", "model": "small", "choices": []any{map[string]any{"index": 0,
				"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": "done"}}},
				"usage": map[string]any{"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}
		}
		json.NewEncoder(w).Encode(body)
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// waitfor waits until a text is in one of the files of a pattern: waitfor PATTERN TEXT.
func waitfor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor PATTERN TEXT")
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		paths, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, path := range paths {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), args[1]) {
				return
			}
		}
	}
	ts.Fatalf("no %s ever held %q", args[0], args[1])
}
