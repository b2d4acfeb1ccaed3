package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/builtin"
	"github.com/open-multi-agent/oma/runtime/process"
	"github.com/open-multi-agent/oma/spec"
)

func (a *app) doctorCommand() *cobra.Command {
	var f teamFlags
	var output, state string
	cmd := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "Say what this machine has of what oma needs, and a team if one is named",
		Long: "Doctor looks at the shell, the state folder and what keeps keys out of the agents' reach. With a team file it also\n" +
			"says which of the team's keys and programs are there; keys by the names of their variables. It opens no connection and prints no\n" +
			"value of a variable. It ends 3 when something that is needed is missing.",
		Args: argsAtMost(1, "one team file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			return a.doctor(cmd.Context(), path, &f, state, output)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&state, "state", "", "the folder runs are kept in (OMA_STATE)")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json or yaml")
	return cmd
}

// diagnosis is the document doctor prints.
type diagnosis struct {
	OK       bool      `json:"ok"`
	Version  string    `json:"version"`
	Commit   string    `json:"commit,omitempty"`
	Platform string    `json:"platform"`
	Team     string    `json:"team,omitempty"`
	Checks   []finding `json:"checks"`
}

// finding is what was found about one thing.
type finding struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Needed bool   `json:"needed"` // without it a run cannot work
	Detail string `json:"detail"`
}

// What can be found. A weak thing is there and does less than it could.
const (
	found    = "ok"
	weak     = "weak"
	absent   = "missing"
	notTried = "not-tried"
)

func (d *diagnosis) add(f finding) {
	d.Checks = append(d.Checks, f)
	d.OK = d.OK && !(f.Needed && f.Status == absent)
}

func (a *app) doctor(ctx context.Context, path string, f *teamFlags, state, output string) error {
	b := build()
	d := diagnosis{OK: true, Version: b.Version, Commit: b.Commit, Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
	dir, shell := ".", false
	var c *compiled
	if flag := f.givenOrRequired(); path == "" && flag != "" {
		return usage("--%s belongs to a team file, and none is named", flag)
	}
	if path != "" {
		var err error
		if c, err = a.compile(path, f); err != nil {
			return err
		}
		d.Team, dir = c.plan.Team.Name, c.dir
		shell = slices.ContainsFunc(c.plan.Agents, func(ag spec.PlanAgent) bool { return ag.Has("bash") })
	}
	bash := a.bash(ctx, shell)
	if c != nil && !shell {
		bash.Detail += "; no agent here has bash"
	}
	d.add(bash)
	d.add(a.git(ctx))
	d.add(a.stateFolder(state, dir))
	d.add(a.secrecy())
	if c != nil {
		a.ofTeam(&d, c)
	}
	if err := a.print(output, d, d.text); err != nil || d.OK {
		return err
	}
	return ended(runtime.ExitBroken)
}

func (d diagnosis) text(w io.Writer) {
	fmt.Fprintf(w, "oma %s  %s\n", d.Version, d.Platform)
	if d.Team != "" {
		fmt.Fprintf(w, "team %s\n", d.Team)
	}
	for _, f := range d.Checks {
		needed := ""
		if f.Needed && f.Status == absent {
			needed = "  (needed)"
		}
		fmt.Fprintf(w, "  %-9s %-20s %s%s\n", f.Status, f.Name, escape(f.Detail), needed)
	}
}

// bash finds the shell the way the bash tool does.
func (a *app) bash(ctx context.Context, needed bool) finding {
	path, err := builtin.FindBash(a.lookup)
	if err != nil {
		return finding{"bash", absent, needed, err.Error() + "; the tool bash needs it"}
	}
	return a.program(ctx, "bash", path, needed)
}

// git is of no use to a run; the CI job and people need it.
func (a *app) git(ctx context.Context) finding {
	path, err := exec.LookPath("git")
	if err != nil {
		return finding{"git", absent, false, "not on PATH; a run does not need it"}
	}
	return a.program(ctx, "git", path, false)
}

// program says a program's version, which it must give within seconds.
func (a *app) program(ctx context.Context, name, path string, needed bool) finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = []string{"PATH=" + a.getenv("PATH"), "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return finding{name, absent, needed, fmt.Sprintf("%s does not run: %v", path, err)}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return finding{name, found, needed, path + "  " + first}
}

// stateFolder tries to write where runs would be kept, or in the nearest folder above that exists, and leaves nothing.
func (a *app) stateFolder(flag, project string) finding {
	project, err := filepath.Abs(project)
	if err != nil {
		return finding{"state folder", absent, true, err.Error()}
	}
	dir, err := a.stateDir(flag, project)
	if err != nil {
		return finding{"state folder", absent, true, err.Error()}
	}
	at := dir
	for !exists(at) && filepath.Dir(at) != at {
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".oma-doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return finding{"state folder", absent, true, fmt.Sprintf("%s cannot be written: %v", dir, err)}
	}
	return finding{"state folder", found, true, dir}
}

// secrecy says what keeps an agent's commands from the keys this program holds.
func (a *app) secrecy() finding {
	switch {
	case os.Geteuid() == 0 && a.closed:
		return finding{"secrets", weak, false, "as root: keys are taken out of the environment before a command of an agent runs; the memory stays open to root"}
	case a.closed:
		return finding{"secrets", found, false, "memory and environment are closed to the user's other processes"}
	}
	return finding{"secrets", weak, false, "memory and environment are open to the user's other processes, commands of agents included"}
}

// ofTeam looks at what a team needs.
func (a *app) ofTeam(d *diagnosis, c *compiled) {
	w, err := a.newWiring(c)
	if err != nil {
		d.add(finding{"working folder", absent, true, err.Error()})
		return
	}
	w.providers(d, c)
	w.ownTools(d)
	w.servers(d)
	w.externals(d)
}

// servers says which programs MCP servers are, and whom the team would ask.
func (w *wiring) servers(d *diagnosis) {
	for _, name := range slices.Sorted(maps.Keys(w.plan.MCPServers)) {
		s := w.plan.MCPServers[name].MCPServer
		if s.URL != "" {
			d.add(finding{"server " + name, notTried, false, s.URL + "  no connection is opened"})
			continue
		}
		needed := slices.ContainsFunc(w.plan.Agents, func(ag spec.PlanAgent) bool {
			return w.atWork(ag.Name) && slices.Contains(runtime.ServersOf(w.plan, &ag), name)
		})
		path, err := process.Find(w.serverProgram(&s), w.serverFolder(&s), w.app.getenv("PATH"))
		if err != nil {
			d.add(finding{"server " + name, absent, needed, err.Error()})
			continue
		}
		d.add(finding{"server " + name, found, needed, path})
	}
}

// externals says which programs work in models' places.
func (w *wiring) externals(d *diagnosis) {
	for i := range w.plan.Agents {
		a := &w.plan.Agents[i]
		if a.Backend == nil {
			continue
		}
		path, err := w.found(a)
		if err != nil {
			d.add(finding{"agent " + a.Name, absent, w.atWork(a.Name), err.Error()})
			continue
		}
		d.add(finding{"agent " + a.Name, found, w.atWork(a.Name), path})
	}
}

// providers says which keys are there and where the team would connect to.
func (w *wiring) providers(d *diagnosis, c *compiled) {
	working := w.working()
	for _, name := range slices.Sorted(maps.Keys(c.plan.Providers)) {
		p := c.plan.Providers[name]
		if p.APIKey != nil {
			d.add(w.key("key of "+name, p.APIKey, working[name]))
		}
		switch p.Kind {
		case "openai", "ollama":
			d.add(finding{"provider " + name, notTried, false, baseURL(p.Provider) + "  no connection is opened"})
		case "scripted":
			d.add(finding{"provider " + name, found, working[name], "plays " + p.Cassette})
		}
	}
}

// ownTools says which credentials are there, which programs the team's own tools start, and whom they would ask.
func (w *wiring) ownTools(d *diagnosis) {
	for _, ag := range w.plan.Agents {
		for _, name := range slices.Sorted(maps.Keys(ag.Credentials)) {
			ref := ag.Credentials[name]
			d.add(w.key(name+" of "+ag.Name, &ref, w.atWork(ag.Name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.plan.CustomTools)) {
		t := w.plan.CustomTools[name]
		if t.HTTP != nil {
			d.add(finding{"tool " + name, notTried, false, t.HTTP.URL + "  no connection is opened"})
			continue
		}
		needed := slices.ContainsFunc(w.plan.Agents, func(ag spec.PlanAgent) bool { return ag.Has(name) && w.atWork(ag.Name) })
		path, err := process.Find(t.Command[0], w.dir, w.app.getenv("PATH"))
		if err != nil {
			d.add(finding{"tool " + name, absent, needed, err.Error()})
			continue
		}
		d.add(finding{"tool " + name, found, needed, path})
	}
}

// key names where a secret comes from. Its value does not leave this function.
func (w *wiring) key(name string, ref *spec.SecretRef, needed bool) finding {
	from := "the environment variable " + ref.Env + " is set"
	if ref.Env == "" {
		from = "the file " + ref.File + " is there"
	}
	if _, err := w.secret(ref); err != nil {
		return finding{name, absent, needed, err.Error()}
	}
	return finding{name, found, needed, from}
}

// baseURL is the address a provider is asked at, without what could be a secret in it.
func baseURL(p spec.Provider) string {
	base := runtime.BaseURL(p)
	if u, err := url.Parse(base); err == nil {
		u.RawQuery = ""
		base = u.Redacted()
	}
	return base
}
