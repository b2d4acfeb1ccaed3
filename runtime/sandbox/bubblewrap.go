package sandbox

import (
	"context"
	"fmt"
	"os"

	"github.com/open-multi-agent/oma/runtime/process"
)

type bubblewrapped struct {
	*area
	o Options
}

func (b *bubblewrapped) Wrap(c process.Command) (process.Command, func(process.Outcome), error) {
	folders, err := b.now()
	if err != nil {
		return c, nil, err
	}
	program, err := b.o.find(b.area, "bwrap")
	if err != nil {
		return c, nil, err
	}
	args := b.walls(folders)
	args = append(args, "--chdir", c.Dir, "--", c.Program)
	return process.Command{Program: program, Args: append(args, c.Args...), Dir: "/", Env: withTemp(c.Env, "/tmp")}, func(process.Outcome) {}, nil
}

// walls are bwrap's arguments. Each mount covers those before it. There is no --new-session: package process gives every
// child a session without a terminal, and in that session's group it is killed with all the others.
func (b *bubblewrapped) walls(folders []string) []string {
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	for _, dir := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"} { // the kernel's own, which root writes without any capability
		args = append(args, "--ro-bind-try", dir, dir)
	}
	for _, dir := range []string{"/tmp", "/run"} { // where services have their sockets
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			args = append(args, "--tmpfs", dir)
		}
	}
	// Names are looked up by the one, and the programs of NixOS lie in the other.
	for _, dir := range []string{"/run/systemd/resolve", "/run/current-system"} {
		args = append(args, "--ro-bind-try", dir, dir)
	}
	for _, dir := range folders {
		args = append(args, "--bind", dir, dir)
	}
	args = append(args, "--unshare-pid", "--unshare-ipc", "--die-with-parent")
	if b.o.NoNetwork {
		args = append(args, "--unshare-net")
	}
	if os.Geteuid() == 0 { // root keeps all capabilities otherwise, and mounts everything anew
		args = append(args, "--cap-drop", "ALL")
		for _, name := range []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"} {
			args = append(args, "--cap-add", "CAP_"+name)
		}
	}
	return args
}

// Why puts the walls up once around a program that does nothing.
func (b *bubblewrapped) Why(ctx context.Context) error {
	program, err := b.o.find(b.area, "bwrap")
	if err != nil {
		return err
	}
	if err := b.declared(); err != nil {
		return err
	}
	nothing, err := process.Find("true", "", "", "/bin", "/usr/bin", "/run/current-system/sw/bin")
	if err != nil {
		return err
	}
	if _, err := probe(ctx, process.Command{Program: program, Args: append(b.walls(nil), "--", nothing), Dir: "/"}); err != nil {
		return fmt.Errorf("bwrap cannot be used: %w", err)
	}
	return nil
}

func (*bubblewrapped) Close() error { return nil }
