package sandbox

import (
	"fmt"
	"path/filepath"

	"github.com/open-multi-agent/oma/spec"
)

// Promise is one thing that is held against commands, or is not.
type Promise struct {
	Control string
	// Level is enforced: commands cannot. observed: held in part, and Mechanism says what is open. not-enforceable: not
	// held.
	Level     string
	Mechanism string
}

const notHeld = spec.NotEnforceable

// The controls of promises.
const (
	Containment = "containment" // files are written in the declared folders only
	Evidence    = "evidence"    // what judges the run is not among them
	Secrets     = "secrets"     // nothing of the program is read: its memory and environment
	Network     = "network"     // no connection is opened; there where NoNetwork was asked for
	Processes   = "processes"   // nothing outlives its call
	Pinned      = "image"       // what runs is what was meant; for a container
)

func (l local) Held() []Promise {
	out := []Promise{
		{Containment, notHeld, "bash runs anywhere the user may"},
		{Evidence, notHeld, "bash can write what judges it"},
		{Secrets, spec.Observed, "bash gets a minimal environment; the program's own is closed to it as far as the machine allows"},
	}
	if l.o.NoNetwork {
		out = append(out, Promise{Network, notHeld, "nothing keeps bash off the network"})
	}
	return append(out, looseProcesses)
}

var looseProcesses = Promise{Processes, spec.Observed, "the process group is killed when the call ends; what moved to a group of its own goes on"}

func (l *landlocked) Held() []Promise {
	v := landlockVersion()
	// Docker's daemon and systemd write anything anywhere for whoever reaches their sockets.
	level, services := spec.Observed, "a service with a Unix socket can be asked to write anywhere"
	if v >= landlockUnix {
		level, services = spec.Enforced, "Unix sockets of other programs are refused"
	}
	out := []Promise{
		{Containment, level, fmt.Sprintf("landlock, version %d: files are made, written and removed in the declared folders and a temporary one only; "+
			"modes, owners and times of others can be changed; %s", v, services)},
		l.evidence(l.o.Protected, level, "landlock", services),
		{Secrets, spec.Observed, "landlock: memory and environment of processes outside are refused, to root too; their command lines are seen, and files are read wherever the user may"},
	}
	if l.o.NoNetwork {
		open := "UDP, Multipath TCP and Unix sockets on paths are open"
		switch {
		case v >= landlockUDP:
			open = "Multipath TCP is open"
		case v >= landlockUnix:
			open = "UDP and Multipath TCP are open"
		}
		out = append(out, Promise{Network, spec.Observed, "landlock refuses TCP connections; " + open})
	}
	return append(out, looseProcesses)
}

func (b *bubblewrapped) Held() []Promise {
	out := []Promise{
		{Containment, spec.Enforced, "bubblewrap: everything but the declared folders is mounted read-only, /tmp and /run are empty; services on Unix sockets elsewhere can be asked to write"},
		b.evidence(b.o.Protected, spec.Enforced, "bubblewrap", "services on Unix sockets elsewhere than /tmp and /run can be asked to write"),
		{Secrets, spec.Observed, "bubblewrap: no other process is seen; files are read wherever the user may"},
	}
	if b.o.NoNetwork {
		out = append(out, Promise{Network, spec.Enforced, "bubblewrap: the network namespace holds a loopback of its own alone; Unix sockets on paths outside /tmp and /run are open"})
	}
	return append(out, Promise{Processes, spec.Enforced, "bubblewrap: the process namespace ends with the call"})
}

func (c *contained) Held() []Promise {
	out := []Promise{
		{Containment, spec.Enforced, "container: the image is read-only, and nothing of the machine but the declared folders is in it"},
		c.evidence(c.o.Protected, spec.Enforced, "container", "nothing else of the machine is in it"),
		{Secrets, spec.Enforced, "container: no process and no file of the machine but the declared folders is seen"},
	}
	if c.o.NoNetwork {
		out = append(out, Promise{Network, spec.Enforced, "container: it has no network but a loopback of its own"})
	}
	out = append(out, Promise{Processes, spec.Enforced, "container: it ends with the call, and is removed by name where its program was killed"})
	if IsPinned(c.o.Image) {
		return append(out, Promise{Pinned, spec.Enforced, "container: the image is named by its digest"})
	}
	return append(out, Promise{Pinned, spec.Observed, "container: the image is named without a digest, and another can take the name"})
}

// evidence is held as far as containment is, and only when nothing that judges the run lies where commands write.
func (a *area) evidence(protected []string, level, by, more string) Promise {
	if path := a.reaches(protected); path != "" {
		return Promise{Evidence, notHeld, fmt.Sprintf("%s lies where commands may write", filepath.Base(path))} // a receipt names no path of the machine
	}
	return Promise{Evidence, level, fmt.Sprintf("%s: what judges the run lies outside the folders that commands may write; %s", by, more)}
}
