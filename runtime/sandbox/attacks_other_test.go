//go:build unix && !linux

package sandbox

var attacks map[string]func(args []string) error
