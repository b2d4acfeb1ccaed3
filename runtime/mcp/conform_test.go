//go:build unix

package mcp

import (
	"context"
	"fmt"
	"os"

	"github.com/open-multi-agent/oma/policies/servers"
	"github.com/open-multi-agent/oma/spec"
)

// conform is the client that the protocol's conformance suite starts, with the address of its server as last argument.
// It calls each tool there is.
func conform() error {
	ctx := context.Background()
	c, err := Open(ctx, "suite", Options{URL: os.Args[len(os.Args)-1], Version: "test"})
	if err != nil {
		return err
	}
	defer c.Close()
	tools, _, err := c.List(ctx)
	if err != nil {
		return err
	}
	offered, ds := servers.Offer("suite", spec.MCPServer{}, tools)
	if ds.HasErrors(true) {
		return fmt.Errorf("%v", ds)
	}
	for _, o := range offered {
		args := map[string]string{"add_numbers": `{"a":5,"b":3}`}[o.Tool.Name]
		if args == "" {
			args = `{}`
		}
		if got := invoke(ctx, c.Tool(o), args); got.IsError {
			return fmt.Errorf("%s: %s", o.Tool.Name, got.Text)
		}
	}
	return nil
}
