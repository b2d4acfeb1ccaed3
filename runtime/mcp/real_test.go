//go:build real && unix

package mcp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/testdata/real/parts"
)

// reach opens a server and gives its tools by the server's names.
func reach(t *testing.T, o Options) (*Client, map[string]runtime.Tool) {
	t.Helper()
	c, err := Open(t.Context(), "real", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	listed, ds, err := c.List(t.Context())
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	offered, ds := servers.Offer("real", spec.MCPServer{}, listed)
	if len(ds) > 0 || len(offered) != len(listed) {
		t.Fatal(ds)
	}
	tools := map[string]runtime.Tool{}
	for _, o := range offered {
		tools[o.Tool.Name] = c.Tool(o)
	}
	lock, err := servers.NewLock(map[string][]spec.ServerTool{"real": listed})
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if changes, err := servers.Compare("real", servers.Tools(lock.Servers["real"].Tools), again); err != nil || len(changes) > 0 {
		t.Errorf("the lock does not hold: %s%v", servers.Diff(changes), err)
	}
	return c, tools
}

func child(t *testing.T, command ...string) Options {
	t.Helper()
	return Options{Command: command, Dir: t.TempDir(), Path: os.Getenv("PATH"), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}}
}

func TestRealEverything(t *testing.T) {
	for name, options := range map[string]func() Options{
		"stdio": func() Options {
			return child(t, append(parts.MCPServer(t, "server-everything"), "stdio")...)
		},
		"http": func() Options { return Options{URL: parts.MCPEverything(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			c, tools := reach(t, options())
			if len(tools) < 10 {
				t.Errorf("%d tools", len(tools))
			}
			for _, test := range []struct {
				tool, args, want string
				isError          bool
			}{
				{"echo", `{"message":"hi"}`, "Echo: hi", false},
				{"echo", `{"wrong":1}`, "message", true},
				{"get-sum", `{"a":2,"b":3}`, "5", false},
				{"get-tiny-image", `{}`, "[image: image/png; inline data]", false},
				{"get-structured-content", `{"location":"New York"}`, `"temperature":33`, false},
				{"get-resource-links", `{"count":2}`, "[resource_link name=", false},
				{"trigger-long-running-operation", `{"duration":1,"steps":4}`, "Long running operation completed", false},
			} {
				tool, ok := tools[test.tool]
				if !ok {
					t.Errorf("no tool %s", test.tool)
					continue
				}
				got := invoke(t.Context(), tool, test.args)
				if got.IsError != test.isError || !strings.Contains(got.Text, test.want) {
					t.Errorf("%s gives %t, %.300s", test.tool, got.IsError, got.Text)
				}
				if test.tool == "get-tiny-image" && (len(got.Attachments) != 1 || got.Attachments[0].MediaType != "image/png" || !strings.HasPrefix(string(got.Attachments[0].Data), "\x89PNG\r\n")) {
					t.Errorf("%d attachments", len(got.Attachments))
				}
				if test.tool == "get-resource-links" && got.Attachments != nil {
					t.Error("what is linked is attached")
				}
				if data := string(got.Data); test.tool == "get-structured-content" && (!strings.Contains(data, `"temperature":33`) || strings.Count(got.Text, "temperature") != 1) {
					t.Errorf("data %s, text %s", data, got.Text)
				}
			}
			started := time.Now()
			c.Close()
			if took := time.Since(started); took > 3*time.Second {
				t.Errorf("closing took %s", took)
			}
		})
	}
}

func TestRealFilesystem(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a.txt"), []byte("text of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, tools := reach(t, child(t, append(parts.MCPServer(t, "server-filesystem"), root)...))
	read := tools["read_text_file"]
	for path, want := range map[string]spec.ToolResult{filepath.Join(root, "a.txt"): {Text: "text of a"}, "/etc/passwd": {Text: "Access denied", IsError: true}} {
		args, err := canon.Bytes(map[string]any{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		got := invoke(t.Context(), read, string(args))
		if got.IsError != want.IsError || !strings.HasPrefix(got.Text, want.Text) || !want.IsError && string(got.Data) != `{"content":"text of a"}` {
			t.Errorf("%s gives %+v, %s", path, got, got.Data)
		}
	}
}

// The suite's scenarios of clients that apply: what elicits does not, since nothing is offered.
func TestRealConformance(t *testing.T) {
	suite := parts.MCPConformance(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"initialize", "tools_call", "sse-retry"} {
		t.Run(scenario, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), suite[0], append(suite[1:], "client", "--command", self, "--scenario", scenario, "-o", dir)...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), fakeVar+"=conformance client")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v %v\n%s", files, err, out)
			}
			raw, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			var checks []struct{ ID, Status, ErrorMessage string }
			if err := json.Unmarshal(raw, &checks); err != nil {
				t.Fatal(err)
			}
			succeeded := 0
			for _, c := range checks {
				switch c.Status {
				case "SUCCESS":
					succeeded++
				case "FAILURE", "WARNING":
					t.Errorf("%s: %s %s", c.ID, c.Status, c.ErrorMessage)
				}
			}
			if succeeded == 0 {
				t.Errorf("nothing was checked:\n%s", raw)
			}
		})
	}
}
