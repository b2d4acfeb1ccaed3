package runtime

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/open-multi-agent/oma/spec"
)

// executor compiles where an agent's bash runs its commands.
func (c *compiler) executor(a *spec.Agent, p *spec.PlanAgent, at spec.Path) {
	x, where := a.ShellExecutor, at.Key("shellExecutor")
	if x == nil {
		x, where = c.team.Defaults.ShellExecutor, spec.Path("defaults.shellExecutor")
	}
	if x == nil || cmp.Or(x.Kind, "local") == "local" && len(x.Write) == 0 && x.Image == "" && x.Network == nil {
		return
	}
	switch {
	case !p.Has("bash"):
		if a.ShellExecutor != nil {
			c.diags.Warnf("shell-executor", where, "agent %q has no bash, so there is nothing to run elsewhere", a.Name).Hint = "leave it out, or grant bash"
		}
		return
	case cmp.Or(x.Kind, "local") == "local":
		c.diags.Errorf("shell-executor", where, "kind local keeps commands from nothing").Hint = "write kind: landlock, bubblewrap or container"
	case (x.Kind == "container") != (x.Image != ""):
		c.diags.Errorf("shell-executor", where, "an image belongs to kind container, and that needs one").Hint = "write {kind: container, image: NAME@sha256:DIGEST}"
	}
	out := *x
	p.ShellExecutor = &out
}

// Walled says that a plan's promise about where bash runs holds on every machine: where it cannot be kept, the run does not
// start.
func Walled(x *spec.ShellExecutor) bool { return x != nil && (x.Required == nil || *x.Required) }

// walls says how far an executor keeps what bash does from the rest of the machine, at the least.
func walls(a *spec.PlanAgent, add func(control, level, mechanism string)) {
	x := a.ShellExecutor
	level := spec.Enforced
	if x.Kind == "landlock" {
		level = spec.Observed // services on the machine can be asked to write, and modes changed
	}
	add("containment", level, x.Kind+" refuses commands of bash to write outside cwd and the folders declared")
	if slices.ContainsFunc(append([]string{a.Cwd}, x.Write...), aroundTeam) {
		add("evidence", spec.NotEnforceable, "bash can write the folder that the team file lies in")
	} else {
		add("evidence", spec.Observed, x.Kind+" refuses them outside; where the run's own files lie is the machine's")
	}
	add("secrets", spec.Observed, x.Kind+" closes the program's environment to them; files that the user may read they may read")
}

// aroundTeam says that a folder, as a plan names it, may hold the team file.
func aroundTeam(folder string) bool {
	clean := path.Clean(folder)
	return folder != "" && (clean == "." || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../"))
}
