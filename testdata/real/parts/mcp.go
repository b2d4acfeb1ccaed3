package parts

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const mcpPackages = "node_modules/@modelcontextprotocol/"

// MCPServer gives the command of a reference server, such as server-everything. Its arguments follow.
func MCPServer(t testing.TB, name string) []string {
	_, file := part(t, mcpPackages+name+"/dist/index.js")
	return []string{"node", file}
}

// MCPEverything starts the reference server that has one of everything, over streamable HTTP. It gives its address.
func MCPEverything(t testing.TB) string {
	command := append(MCPServer(t, "server-everything"), "streamableHttp")
	base := start(t, func(port string) *exec.Cmd {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "PORT="+port)
		return cmd
	})
	return strings.TrimSuffix(base, "/v1") + "/mcp"
}

// MCPConformance gives the command of the protocol's conformance suite.
func MCPConformance(t testing.TB) []string {
	_, file := part(t, mcpPackages+"conformance/dist/index.js")
	return []string{"node", file}
}
