package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

// Tool makes a tool of what was offered. Its calls fail once the server describes the tool in another way than o does:
// what was judged is what is called. Properties that the schema does not name are not sent.
func (c *Client) Tool(o servers.Offered) runtime.Tool {
	t := shaped(o, func(gone []string) {
		slices.Sort(gone)
		c.o.Log.Info("left out properties that the tool does not declare", "server", c.name, "tool", o.Tool.Name, "properties", strings.Join(gone, ", "))
	})
	digest, _ := servers.Digest(&o.Tool) // empty for a tool that nobody has listed: it is none of the server's
	t.Call = func(ctx context.Context, in runtime.Invocation) spec.ToolResult {
		out, err := c.call(ctx, &o, digest, in.Canonical)
		if err != nil {
			return spec.ToolResult{IsError: true, Text: c.o.Redact(fmt.Sprintf("MCP tool %q failed: %s", o.Tool.Name, err))}
		}
		return out
	}
	return t
}

// Locked makes a tool without its server: calls of it are judged like the server's own, and none can be made.
func Locked(o servers.Offered) runtime.Tool {
	t := shaped(o, func([]string) {})
	t.Call = func(context.Context, runtime.Invocation) spec.ToolResult {
		return spec.ToolResult{IsError: true, Text: fmt.Sprintf("MCP tool %q failed: its server is not started here", o.Tool.Name)}
	}
	return t
}

// shaped makes a tool that takes properties out of its input which its schema does not name. note is told which.
func shaped(o servers.Offered, note func(gone []string)) runtime.Tool {
	schema, _ := canon.Decode(o.InputSchema) // Offer has looked
	return runtime.Tool{ToolInfo: o.ToolInfo, Normalise: func(input map[string]any) error {
		if gone := undeclared(schema, input); len(gone) > 0 {
			note(gone)
		}
		return nil
	}}
}

func (c *Client) call(ctx context.Context, o *servers.Offered, digest string, input []byte) (spec.ToolResult, error) {
	if err := c.same(ctx, &o.Tool, digest); err != nil {
		return spec.ToolResult{}, err
	}
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	res, err := c.session.CallTool(bounded, &sdk.CallToolParams{Name: o.Tool.Name, Arguments: json.RawMessage(input)})
	if err != nil {
		return spec.ToolResult{}, c.failure(bounded, "tools/call", err)
	}
	text, ok := exactText(res.Meta)
	if !ok {
		return spec.ToolResult{}, fmt.Errorf("MCP server %q: the answer is no result", c.name)
	}
	return c.result(o, text)
}

// same compares a tool with what the server says now, if it has said that something changed since it was asked. A
// server that changes a tool and does not say so cannot be found out.
func (c *Client) same(ctx context.Context, was *spec.ServerTool, digest string) error {
	free, err := c.looking(ctx)
	if err != nil {
		return err
	}
	defer free()
	if c.known == nil || c.seen != c.changes.Load() {
		if _, _, err := c.list(ctx); err != nil {
			return err
		}
	}
	now, ok := c.known[was.Name]
	switch {
	case !ok:
		return fmt.Errorf("MCP server %q has it no longer", c.name)
	case now.Digest == digest:
		return nil
	}
	fields, err := servers.Differences(was, &now.ServerTool)
	if err != nil {
		return err
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Field
	}
	return fmt.Errorf("MCP server %q has changed its %s since it was judged", c.name, strings.Join(names, ", "))
}
