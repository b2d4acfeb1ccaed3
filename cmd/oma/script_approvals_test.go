package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// keep puts a member of a JSON file into a variable: keep VAR FILE PATH.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: keep VAR FILE PATH")
	}
	doc, err := decodeOne([]byte(ts.ReadFile(args[1])))
	ts.Check(err)
	v, ok := member(doc, args[2])
	if !ok {
		ts.Fatalf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// declare puts public keys into a file: declare FILE NAME… writes what NAME.pub.pem holds, as a string, for NAME.pub.pem
// in quotes.
func declare(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: declare FILE NAME…")
	}
	text := ts.ReadFile(args[0])
	for _, name := range args[1:] {
		name += ".pub.pem"
		key, err := json.Marshal(ts.ReadFile(name))
		ts.Check(err)
		if !strings.Contains(text, `"`+name+`"`) {
			ts.Fatalf("%s does not name %q", args[0], name)
		}
		text = strings.ReplaceAll(text, `"`+name+`"`, string(key))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}
