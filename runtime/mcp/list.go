package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
)

const (
	maxTools     = 10_000
	maxPages     = 1000
	maxListBytes = 64 << 20 // all pages together

	tooManyTools = "there are more than 10000 tools"
)

// List asks the server for its tools, all pages of them, in the server's order. A tool that cannot be described in one
// way, such as one whose schema has a property twice, is left out with a warning; a list that does not end, or has two
// tools of one name, is an error.
func (c *Client) List(ctx context.Context) ([]spec.ServerTool, spec.Diagnostics, error) {
	free, err := c.looking(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	return c.list(ctx)
}

// looking gives this caller alone the use of known and seen, until free is called.
func (c *Client) looking(ctx context.Context) (free func(), err error) {
	select {
	case c.look <- struct{}{}:
		return func() { <-c.look }, nil
	case <-ctx.Done():
		return nil, c.failure(ctx, "tools/list", ctx.Err())
	case <-c.life.Done():
		return nil, c.failure(ctx, "tools/list", errClosed)
	}
}

func (c *Client) list(ctx context.Context) ([]spec.ServerTool, spec.Diagnostics, error) {
	seen := c.changes.Load()
	raw, err := c.pages(ctx)
	if err != nil {
		return nil, nil, err
	}
	var tools []spec.ServerTool
	var ds spec.Diagnostics
	known := map[string]spec.LockedTool{}
	for i, text := range raw {
		t, err := lockedTool(text)
		if err != nil {
			ds.Warnf("mcp-tool", spec.Path("mcpServers").Key(c.name), "%s", c.o.Redact(fmt.Sprintf(
				"tool %d of MCP server %q is left out: %s", i+1, c.name, err)))
			continue
		}
		if _, ok := known[t.Name]; ok {
			return nil, nil, &failure{c.o.Redact(fmt.Sprintf("MCP server %q: lists two tools named %q", c.name, t.Name)), nil}
		}
		known[t.Name] = t
		tools = append(tools, t.ServerTool)
	}
	c.known, c.seen = known, seen
	return tools, ds, nil
}

// pages gives the tools of every page as the server wrote them.
func (c *Client) pages(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	cursors := map[string]bool{}
	for cursor, size := "", 0; ; {
		page, next, err := c.page(ctx, cursor)
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound && cursor == "" {
			return nil, nil // a server of other things than tools
		}
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			size += len(t)
		}
		all = append(all, page...)
		endless := ""
		switch cursor = next; {
		case cursor == "":
			return all, nil
		case cursors[cursor]:
			endless = fmt.Sprintf("the cursor %q comes again", shortened(cursor, maxMessage))
		case len(all) > maxTools:
			endless = tooManyTools
		case len(cursors) >= maxPages:
			endless = fmt.Sprintf("there are more than %d pages", maxPages)
		case size > maxListBytes:
			endless = fmt.Sprintf("the tools have more than %d MiB", maxListBytes>>20)
		}
		if endless != "" {
			return nil, c.failure(ctx, "tools/list", errors.New(endless))
		}
		cursors[cursor] = true
	}
}

// page gives one page, and the cursor of the next. Empty: it is the last.
func (c *Client) page(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	res, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
	if err != nil {
		return nil, "", c.failure(ctx, "tools/list", err)
	}
	var p struct {
		Tools      json.RawMessage `json:"tools"`
		NextCursor string          `json:"nextCursor"`
	}
	text, ok := exactText(res.Meta)
	if !ok || json.Unmarshal(text, &p) != nil {
		return nil, "", c.failure(ctx, "tools/list", errNoList)
	}
	tools, err = elements(p.Tools, maxTools)
	switch {
	case err == errTooMany:
		return nil, "", c.failure(ctx, "tools/list", errors.New(tooManyTools))
	case err != nil:
		return nil, "", c.failure(ctx, "tools/list", errNoList)
	}
	return tools, p.NextCursor, nil
}

var errNoList = errors.New("the answer is no list of tools")

// lockedTool decodes one tool. What has no canonical form could be read in two ways, and is an error.
func lockedTool(text json.RawMessage) (spec.LockedTool, error) {
	var t spec.ServerTool
	if err := canon.Check(text); err != nil {
		return spec.LockedTool{}, err
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return spec.LockedTool{}, errors.New("it is not described as a tool is")
	}
	if t.Name == "" {
		return spec.LockedTool{}, errors.New("it has no name")
	}
	for _, s := range []*spec.Schema{&t.InputSchema, &t.OutputSchema} {
		if string(*s) == "null" {
			*s = nil
		}
	}
	digest, err := servers.Digest(&t)
	return spec.LockedTool{ServerTool: t, Digest: digest}, err
}
