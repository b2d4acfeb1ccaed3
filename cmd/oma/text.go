package main

import "github.com/open-multi-agent/oma/runtime/report"

// escape shows text that a model, a tool or a server wrote, without anything that could act on a terminal.
func escape(s string) string { return report.Escape(s) }

// outside shows such text on a stream that a CI system reads for commands.
func (a *app) outside(s string) string {
	if a.getenv("GITHUB_ACTIONS") == "true" {
		return report.EscapeLog(s)
	}
	return report.Escape(s)
}
