package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakeServer is an MCP server as a file describes it. The file is read again for each request, so that a script can change
// what the server offers; what the server was asked goes into FILE.log.
type fakeServer struct {
	file string
	mu   sync.Mutex
}

// description is what the file says.
type description struct {
	Pages   [][]json.RawMessage        // of tools/list
	Results map[string]json.RawMessage // of tools/call, by tool; else the arguments come back
	Hang    string                     // the method that gets no answer
	Mute    string                     // the tool whose calls get none
	Noise   string                     // written before each answer, on the stream of messages
	Stderr  string                     // said at the start
	Exit    int                        // ends at once, unless 0
}

func (f *fakeServer) description() (d description) {
	raw, err := os.ReadFile(f.file)
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	return d
}

func (f *fakeServer) log(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out, err := os.OpenFile(f.file+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		fmt.Fprintf(out, format+"\n", args...)
		out.Close()
	}
}

// answer gives the answer to one message. Empty: there is none. hangs: there never will be.
func (f *fakeServer) answer(message []byte, d *description, given string) (answer string, hangs bool) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Cursor, Name string
			Arguments    json.RawMessage
		}
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil || m.Method == "" {
		return "", false
	}
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`
	case "tools/list":
		page, _ := strconv.Atoi(m.Params.Cursor)
		tools, _ := json.Marshal(d.Pages[page])
		result = `{"tools":` + string(tools)
		if page+1 < len(d.Pages) {
			result += `,"nextCursor":"` + strconv.Itoa(page+1) + `"`
		}
		result += "}"
	case "tools/call":
		f.log("call %s %s %s", m.Params.Name, m.Params.Arguments, given)
		if result = string(d.Results[m.Params.Name]); result == "" {
			text, _ := json.Marshal(m.Params.Name + " " + string(m.Params.Arguments))
			result = `{"content":[{"type":"text","text":` + string(text) + `}]}`
		}
	default:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method"}}`, m.ID), false
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result), m.Method == d.Hang || d.Mute != "" && m.Params.Name == d.Mute
}

// fakeMCP is the server as a program: mcp-server FILE.
func fakeMCP() {
	f := &fakeServer{file: os.Args[1]}
	d := f.description()
	where, _ := os.Getwd()
	f.log("started with LARK=%s HOME=%t in %s", os.Getenv("LARK"), os.Getenv("HOME") != "", where[strings.LastIndexByte(where, '/')+1:])
	if d.Stderr != "" {
		fmt.Fprintln(os.Stderr, d.Stderr)
	}
	if d.Exit != 0 {
		os.Exit(d.Exit)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		d := f.description()
		answer, hangs := f.answer(line, &d, os.Getenv("LARK"))
		if answer == "" || hangs {
			continue
		}
		if d.Noise != "" {
			fmt.Println(d.Noise)
		}
		fmt.Println(answer)
	}
}

// mcpserver serves a description over HTTP for the rest of the script: mcpserver VAR FILE. Each call is logged with the
// header Authorization that came along.
func mcpserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mcpserver VAR FILE")
	}
	f := &fakeServer{file: ts.MkAbs(args[1])}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		message, _ := io.ReadAll(r.Body)
		d := f.description()
		answer, hangs := f.answer(message, &d, r.Header.Get("Authorization"))
		switch {
		case hangs:
			<-r.Context().Done()
		case answer == "":
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answer)
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}
