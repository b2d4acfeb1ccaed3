package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// toolserver starts a server that stands for what a tool asks: toolserver VAR. Its address goes to the variable VAR, and
// every request is a line of the file VAR.log: method, address and body. /echo answers with what it was asked, the key
// included, /moved sends the asker elsewhere, /odd answers with a JSON text that is no object, /broken fails and /hang
// gives no answer as long as it is waited for.
func toolserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: toolserver VAR")
	}
	path := ts.MkAbs(args[0] + ".log")
	var one sync.Mutex
	mux := http.NewServeMux()
	for pattern, answer := range map[string]http.HandlerFunc{
		"/moved":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/stolen", http.StatusFound) },
		"/odd":    func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, "odd") },
		"/broken": func(w http.ResponseWriter, r *http.Request) { writeJSON(w, http.StatusForbidden, r.Header) },
		"/hang":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/": func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, http.StatusOK, map[string]any{"asked": map[string]any{"path": r.RequestURI, "key": r.Header.Get("Authorization")}, "n": 7})
		},
	} {
		mux.HandleFunc(pattern, answer)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		one.Lock()
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
			fmt.Fprintln(f, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body)))
			f.Close()
		}
		one.Unlock()
		mux.ServeHTTP(w, r)
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}
