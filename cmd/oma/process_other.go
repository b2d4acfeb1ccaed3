//go:build !linux

package main

import "github.com/open-multi-agent/oma/spec"

// closeProcess has no counterpart here: another process of the same user may read this one's environment.
func closeProcess() bool { return false }

// discardTyped has no counterpart here: what was typed before a question can answer it.
func discardTyped() {}

func (a *app) hideSecrets(*wiring) error { return nil }

func hiddenEnvironment([]string) map[string]string { return nil }

func (s *execution) closedHere(c spec.Control) spec.Control { return c }
