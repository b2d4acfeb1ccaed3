package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The options of some agents, which differ in their ids.
const (
	alwaysOptions = `[{"optionId":"always","kind":"allow_always"},{"optionId":"never","kind":"reject_always"}]`
	fourOptions   = `[{"optionId":"a2","kind":"allow_always"},{"optionId":"a1","kind":"allow_once"},{"optionId":"r2","kind":"reject_always"},{"optionId":"r1","kind":"reject_once"}]`
)

// TestAC03 holds that answers are chosen by kind: the least for a yes, a rejection for a no, cancelled only where nothing
// else is offered.
func TestAC03(t *testing.T) {
	for _, test := range []struct {
		options           string
		deny, allow, auto string // "kind id"
	}{
		{onceOptions, "reject_once o2", "allow_once o1", "allow_once o1"},
		{fourOptions, "reject_once r1", "allow_once a1", "allow_once a1"},
		{alwaysOptions, "reject_always never", "reject_always never", "allow_always always"},
		{`[{"optionId":"y","kind":"allow_once"}]`, "cancelled ", "allow_once y", "allow_once y"},
		{`[{"optionId":"y","kind":"allow_always"}]`, "cancelled ", "cancelled ", "allow_always y"},
		{`[]`, "cancelled ", "cancelled ", "cancelled "},
		{`[{"optionId":"y","kind":"allow_once"},{"optionId":"y","kind":"reject_once"}]`, "cancelled ", "cancelled ", "cancelled "},
		{`[{"optionId":"","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}]`, "reject_once n", "reject_once n", "reject_once n"},
		{`[{"optionId":"z","kind":"allow_forever"},{"optionId":"n","kind":"reject_once"}]`, "reject_once n", "reject_once n", "reject_once n"},
	} {
		var options []permission
		if err := json.Unmarshal([]byte(test.options), &options); err != nil {
			t.Fatal(err)
		}
		chosen := func(yes, always bool) string {
			kind, id := choose(options, yes, always)
			return kind + " " + id
		}
		if got := [3]string{chosen(false, false), chosen(true, false), chosen(true, true)}; got != [3]string{test.deny, test.allow, test.auto} {
			t.Errorf("%s: got %q", test.options, got)
		}
	}
}

// TestPermissionForms holds what is judged, by what agents send.
func TestPermissionForms(t *testing.T) {
	for _, test := range []struct {
		name   string
		before string // an update of the call, if any
		call   string
		want   []Permission // without CallID and OptionKinds
		reason string
	}{
		{"opencode: text", "", `{"toolCallId":"c","title":"bash","kind":"execute","rawInput":{"command":"echo hi","description":"echo"}}`,
			[]Permission{{Title: "bash", Kind: "execute", Command: "echo hi"}}, ""},
		{"codex: a shell and its text", "", `{"toolCallId":"c","title":"Run echo","kind":"execute","rawInput":{"command":["/bin/bash","-lc","echo hi > out.txt"],"cwd":"/work"}}`,
			[]Permission{{Title: "Run echo", Kind: "execute", Command: "echo hi > out.txt"}}, ""},
		{"words", "", `{"toolCallId":"c","title":"t","rawInput":{"command":["git","commit","-m","it's; rm -rf /"]}}`,
			[]Permission{{Title: "t", Kind: "execute", Command: `git commit -m 'it'\''s; rm -rf /'`}}, ""},
		{"a shell with more than one text", "", `{"toolCallId":"c","title":"t","rawInput":{"command":["bash","-c","echo $0","; rm x"]}}`,
			[]Permission{{Title: "t", Kind: "execute", Command: `bash -c 'echo $0' '; rm x'`}}, ""},
		{"a program and its arguments", "", `{"toolCallId":"c","title":"t","rawInput":{"command":"git","args":["log","a b"]}}`,
			[]Permission{{Title: "t", Kind: "execute", Command: `git log 'a b'`}}, ""},
		{"cmd", "", `{"toolCallId":"c","title":"t","rawInput":{"cmd":"ls"}}`, []Permission{{Title: "t", Kind: "execute", Command: "ls"}}, ""},
		{"gemini: the title alone", "", `{"toolCallId":"c","title":"echo hi > out.txt [current working directory /work] (says hi)","kind":"execute"}`,
			[]Permission{{Title: "echo hi > out.txt [current working directory /work] (says hi)", Kind: "execute",
				Command: "echo hi > out.txt [current working directory /work] (says hi)", CommandFromTitle: true}}, ""},
		{"a quoted title", "", "{\"toolCallId\":\"c\",\"title\":\"`rm x`\",\"kind\":\"execute\"}",
			[]Permission{{Title: "`rm x`", Kind: "execute", Command: "rm x", CommandFromTitle: true}}, ""},
		{"a title with two quoted parts", "", "{\"toolCallId\":\"c\",\"title\":\"`ls`; `rm x`\",\"kind\":\"execute\"}",
			[]Permission{{Title: "`ls`; `rm x`", Kind: "execute", Command: "`ls`; `rm x`", CommandFromTitle: true}}, ""},
		{"a command that calls itself reading", "", `{"toolCallId":"c","title":"cat","kind":"read","rawInput":{"command":"rm -rf /"}}`,
			[]Permission{{Title: "cat", Kind: "execute", Command: "rm -rf /"}}, ""},
		{"a command that calls itself done", "", `{"toolCallId":"c","title":"cat","kind":"read","status":"completed","rawInput":{"command":"rm -rf /"}}`,
			[]Permission{{Title: "cat", Kind: "execute", Command: "rm -rf /"}}, ""},
		{"the call was told before", rmCall, `{"toolCallId":"c1"}`, []Permission{{Title: "rm -rf build", Kind: "execute", Command: "rm -rf build"}}, ""},
		{"what is asked stands before what was told", rmCall, `{"toolCallId":"c1","rawInput":{"command":"ls"}}`, []Permission{{Title: "rm -rf build", Kind: "execute", Command: "ls"}}, ""},
		{"an edit", "", `{"toolCallId":"c","title":"Edit","kind":"edit","rawInput":{"filePath":"/work/src/../src/a.go"},"locations":[{"path":"src/a.go","line":3}],"content":[{"type":"diff","path":"/work/src/a.go","newText":"x"}]}`,
			[]Permission{{Title: "Edit", Kind: "edit", Path: "src/a.go"}}, ""},
		{"several paths are judged each", "", `{"toolCallId":"c","title":"Patch","kind":"edit","rawInput":{"changes":{"/etc/passwd":{},"/work/a":{}}},"locations":[{"path":"/work/b"}]}`,
			[]Permission{{Title: "Patch", Kind: "edit", Path: "/etc/passwd"}, {Title: "Patch", Kind: "edit", Path: "a"}, {Title: "Patch", Kind: "edit", Path: "b"}}, ""},
		{"a move", "", `{"toolCallId":"c","title":"mv","kind":"move","rawInput":{"source":"a","destination":"../b"}}`,
			[]Permission{{Title: "mv", Kind: "move", Path: "a"}, {Title: "mv", Kind: "move", Path: "/b"}}, ""},
		{"a kind nobody knows", "", `{"toolCallId":"c","title":"t","kind":"switch_mode"}`, []Permission{{Title: "t", Kind: "other"}}, ""},
		{"nothing", "", `{}`, []Permission{{Kind: "other"}}, ""},
		{"nulls", "", `{"toolCallId":"c","title":null,"kind":null,"rawInput":{"command":null,"path":null},"locations":null,"content":null}`, []Permission{{Kind: "other"}}, ""},

		{"an input that is no object", "", `{"toolCallId":"c","title":"t","rawInput":"rm"}`, []Permission{{Title: "t", Kind: "other"}}, "its input is not an object"},
		{"a command that is no text", "", `{"toolCallId":"c","title":"t","rawInput":{"command":{"a":1}}}`, []Permission{{Title: "t", Kind: "execute"}}, "its command is not understood"},
		{"words that are no text", "", `{"toolCallId":"c","title":"t","rawInput":{"command":["a",1]}}`, []Permission{{Title: "t", Kind: "execute"}}, "its command is not understood"},
		{"two commands", "", `{"toolCallId":"c","title":"t","rawInput":{"command":"ls","cmd":"rm x"}}`, []Permission{{Title: "t", Kind: "execute"}}, "its command is not understood"},
		{"an empty command", "", `{"toolCallId":"c","title":"t","rawInput":{"command":" "}}`, []Permission{{Title: "t", Kind: "execute"}}, "its command is not understood"},
		{"no command at all", "", `{"toolCallId":"c","kind":"execute"}`, []Permission{{Kind: "execute", CommandFromTitle: true}}, "it names no command"},
		{"a command that is too long", "", `{"toolCallId":"c","title":"t","rawInput":{"command":"` + strings.Repeat("x", maxJudged+1) + `"}}`, []Permission{{Title: "t", Kind: "execute"}}, "its command is too long to be judged"},
		{"a path that is no text", "", `{"toolCallId":"c","title":"t","kind":"edit","rawInput":{"path":["a"]}}`, []Permission{{Title: "t", Kind: "edit"}}, "its paths are not understood"},
		{"locations that are none", "", `{"toolCallId":"c","title":"t","kind":"edit","locations":{"path":"a"}}`, []Permission{{Title: "t", Kind: "edit"}}, "its paths are not understood"},
		{"a path with a zero byte", "", `{"toolCallId":"c","title":"t","kind":"edit","rawInput":{"path":"a\u0000b"}}`, []Permission{{Title: "t", Kind: "edit"}}, "its paths are not understood"},
		{"too many paths", "", `{"toolCallId":"c","title":"t","kind":"edit","locations":[` + manyLocations(maxPaths+1) + `]}`, []Permission{{Title: "t", Kind: "edit"}}, manyPaths},
	} {
		t.Run(test.name, func(t *testing.T) {
			var judged []Permission
			r, err := turnOf(t, Options{Permit: func(_ ctxt, p Permission) Answer { judged = append(judged, p); return Allow }}, func(f *fake) {
				if test.before != "" {
					f.update(`{"sessionUpdate":"tool_call",` + test.before[1:])
				}
				f.ask(test.call, onceOptions)
				f.say("ok")
				f.end(endTurn)
			})
			if err != nil || len(r.Decisions) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			d := r.Decisions[0]
			if d.Reason != test.reason || d.Allowed != (test.reason == "") {
				t.Errorf("allowed %v, reason %q, want %q", d.Allowed, d.Reason, test.reason)
			}
			if test.reason != "" {
				if judged != nil {
					t.Errorf("somebody was asked: %+v", judged)
				}
				judged = []Permission{d.Permission}
			}
			for i := range judged {
				if diff := cmp.Diff([]string{"allow_once", "reject_once"}, judged[i].OptionKinds); diff != "" {
					t.Error(diff)
				}
				judged[i].CallID, judged[i].OptionKinds = "", nil
			}
			if diff := cmp.Diff(test.want, judged); diff != "" {
				t.Errorf("judged (-want +got):\n%s", diff)
			}
		})
	}
}

func manyLocations(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"path":"f%d"}`, i))
	}
	return strings.Join(list, ",")
}

// TestModes holds who decides.
func TestModes(t *testing.T) {
	const notUnderstood = `{"toolCallId":"c","title":"t","rawInput":7}`
	for _, test := range []struct {
		mode   string
		permit func(ctxt, Permission) Answer
		call   string
		want   string
	}{
		{Gates, nil, rmCall, "reject_once"},
		{Gates, func(ctxt, Permission) Answer { return Allow }, rmCall, "allow_once"},
		{Gates, func(ctxt, Permission) Answer { return Deny }, rmCall, "reject_once"},
		{Gates, func(ctxt, Permission) Answer { return Allow }, notUnderstood, "reject_once"},
		{Gates, func(_ ctxt, p Permission) Answer { return p.Path != "secret" }, `{"title":"t","kind":"edit","locations":[{"path":"a"},{"path":"secret"}]}`, "reject_once"},
		{Reject, func(ctxt, Permission) Answer { return Allow }, rmCall, "reject_once"},
		{AutoApprove, func(ctxt, Permission) Answer { return Deny }, rmCall, "allow_once"},
		{AutoApprove, nil, notUnderstood, "allow_once"},
	} {
		var got message
		r, err := turnOf(t, Options{Permission: test.mode, Permit: test.permit}, func(f *fake) {
			got = f.ask(test.call, onceOptions)
			f.say("ok")
			f.end(endTurn)
		})
		if err != nil {
			t.Fatal(err)
		}
		id := map[string]string{"allow_once": "o1", "reject_once": "o2"}[test.want]
		if d := r.Decisions[0]; d.Answer != test.want || d.Mode != test.mode || !strings.Contains(string(got.Result), `{"optionId":"`+id+`","outcome":"selected"}`) {
			t.Errorf("%s: %+v, sent %s", test.mode, d, got.Result)
		}
	}
}

// TestRejectedTurn holds that an agent which gives up over a no is not taken for one that was cancelled from here.
func TestRejectedTurn(t *testing.T) {
	_, err := turnOf(t, Options{Permission: Reject}, func(f *fake) {
		f.ask(rmCall, onceOptions)
		f.end(`{"stopReason":"cancelled"}`)
	})
	if codeOf(t, err) != CodeTurnCancelled {
		t.Errorf("ended with %v", err)
	}
	wantText(t, err.Error(), "after a permission was refused")
}

// TestBadRequests holds that a request which is not one is refused.
func TestBadRequests(t *testing.T) {
	for _, params := range []string{`{"sessionId":"s1","toolCall":7}`, `{"sessionId":"s1","toolCall":{"title":7}}`, `{"sessionId":"s1","options":{}}`,
		`{"sessionId":"s1","options":[` + strings.Repeat(`{"optionId":"a","kind":"allow_once"},`, maxOptions) + `{}]}`} {
		var got message
		r, err := turnOf(t, Options{Permission: AutoApprove}, func(f *fake) {
			got = f.request("session/request_permission", params)
			f.say("ok")
			f.end(endTurn)
		})
		if err != nil || len(r.Decisions) != 0 || got.Error == nil {
			t.Errorf("%.60s: %+v, %v, sent %s", params, r.Decisions, err, got.Result)
		}
	}
}
