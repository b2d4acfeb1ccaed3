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

// Alone says that what an agent's executor holds, it holds of all that the agent does: no other tool of it leaves its folder.
func Alone(p *spec.Plan, a *spec.PlanAgent) bool {
	return a.ShellExecutor != nil && a.Containment != "none" && !a.StartsBesideShell(p)
}

// Weaker gives the weaker one of two levels. What is no level is weaker than any.
func Weaker(a, b string) string {
	order := []string{spec.NotEnforceable, spec.Observed, spec.Enforced}
	if slices.Index(order, a) < slices.Index(order, b) {
		return a
	}
	return b
}

// keptTo says that a receipt's map is its plan's. Of agents whose bash runs behind walls it may say less: where the folders
// really lie is known to the machine alone.
func keptTo(p *spec.Plan, got []spec.Control) bool {
	agents := p.ByName()
	return slices.EqualFunc(got, p.Enforcement, func(is, was spec.Control) bool {
		a := agents[was.Agent]
		less := a != nil && a.ShellExecutor != nil && Weaker(is.Level, was.Level) == is.Level && slices.Contains([]string{spec.NotEnforceable, spec.Observed, spec.Enforced}, is.Level)
		return is.Agent == was.Agent && is.Control == was.Control && (is.Level == was.Level || less)
	})
}

// walls says how far an executor keeps what bash does from the rest of the machine, at the least.
func walls(a *spec.PlanAgent, add func(control, level, mechanism string)) {
	x := a.ShellExecutor
	level := spec.Enforced
	if x.Kind == "landlock" {
		level = spec.Observed // services on the machine can be asked to write, and modes changed
	}
	contained, mechanism := level, x.Kind+" refuses commands of bash to write outside cwd and the folders declared"
	if slices.ContainsFunc(x.Write, elsewhere) {
		contained, mechanism = spec.Observed, mechanism+", some of which are not the team's"
	}
	add("containment", contained, mechanism)
	if slices.ContainsFunc(append([]string{a.Cwd}, x.Write...), aroundTeam) {
		add("evidence", spec.NotEnforceable, "bash can write the folder that the team file lies in")
	} else {
		add("evidence", spec.Observed, x.Kind+" refuses them outside; where the run's own files lie is the machine's")
	}
	add("secrets", spec.Observed, x.Kind+" closes the program's environment to them; files that the user may read they may read")
	if x.Network != nil && !*x.Network {
		add("network", level, x.Kind+" refuses commands of bash to open connections")
	}
	if x.Kind != "container" {
		return
	}
	if name, digest, _ := strings.Cut(x.Image, "sha256:"); len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == "" && (name == "" || strings.HasSuffix(name, "@")) {
		add("image", spec.Enforced, "the image is named by its digest")
	} else {
		add("image", spec.Observed, "the image is named without a digest, and another can take the name")
	}
}

// elsewhere says that a folder, as a plan names it, does not lie in that of the team file.
func elsewhere(folder string) bool {
	clean := path.Clean(folder)
	return path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../")
}

// aroundTeam says that a folder, as a plan names it, may hold the team file.
func aroundTeam(folder string) bool {
	return folder != "" && (path.Clean(folder) == "." || elsewhere(folder))
}
