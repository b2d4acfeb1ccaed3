package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// fakeACP is a small agent that speaks the Agent Client Protocol. To each prompt it asks for four things, one after
// another, edits the file it was let edit, and tells what it was answered. MODE refuse, die or silent ends its turn so.
func fakeACP() {
	in := bufio.NewScanner(os.Stdin)
	send := func(m map[string]any) {
		m["jsonrpc"] = "2.0"
		b, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(b))
	}
	type message struct {
		ID     any             `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
	}
	next := func() (m message) {
		if !in.Scan() {
			os.Exit(0)
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		return m
	}
	asked := 0
	permitted := func(kind string, raw map[string]any) bool {
		asked++
		id := fmt.Sprintf("q%d", asked)
		send(map[string]any{"id": id, "method": "session/request_permission", "params": map[string]any{"sessionId": "s",
			"toolCall": map[string]any{"toolCallId": fmt.Sprintf("t%d", asked), "title": kind, "kind": kind, "rawInput": raw},
			"options":  []any{map[string]any{"optionId": "yes", "name": "y", "kind": "allow_once"}, map[string]any{"optionId": "no", "name": "n", "kind": "reject_once"}}}})
		for {
			if m := next(); m.ID == id {
				return strings.Contains(string(m.Result), `"yes"`)
			}
		}
	}
	for {
		switch m := next(); m.Method {
		case "initialize":
			send(map[string]any{"id": m.ID, "result": map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{}}})
		case "session/new":
			send(map[string]any{"id": m.ID, "result": map[string]any{"sessionId": "s"}})
		case "session/prompt":
			if os.Getenv("MODE") == "die" {
				fmt.Fprintln(os.Stderr, "out of memory with", os.Getenv("TOKEN"))
				os.Exit(9)
			}
			said := fmt.Sprint(permitted("read", map[string]any{"path": "a"}), permitted("execute", map[string]any{"command": "go test ./..."}),
				permitted("execute", map[string]any{"command": []any{"/bin/bash", "-lc", "ls & rm -rf /"}}), permitted("edit", map[string]any{"path": "x.txt"}))
			if strings.HasSuffix(said, "true") {
				if err := os.WriteFile("x.txt", []byte("x\n"), 0o600); err != nil {
					panic(err)
				}
			}
			send(map[string]any{"method": "session/update", "params": map[string]any{"sessionId": "s", "update": map[string]any{
				"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": said + " " + os.Getenv("TOKEN")}}}})
			result := map[string]any{"stopReason": "end_turn", "usage": map[string]any{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}}
			switch os.Getenv("MODE") {
			case "refuse":
				result["stopReason"] = "refusal"
			case "silent":
				delete(result, "usage")
			}
			send(map[string]any{"id": m.ID, "result": result})
		}
	}
}
