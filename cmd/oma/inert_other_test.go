//go:build !linux || !(amd64 || arm64)

package main

// programs are what this test binary can be started as.
func programs() map[string]func() {
	return map[string]func(){"oma": main, "oma-killed": killed, "acp-agent": fakeACP, "acp-steps": stepsACP, "mcp-server": fakeMCP}
}
