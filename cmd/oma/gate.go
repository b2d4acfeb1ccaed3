package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/runtime/report"
	"github.com/open-multi-agent/oma/spec"
)

type gateFlags struct {
	teamFlags
	team, plan, events, format, output    string
	unbound, notApplicable, requireSigned bool
	noLog, tree                           bool
	state                                 string
	key, signature, artifact              string
}

func (a *app) gateCommand() *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate RECEIPT",
		Short: "Decide about a release by a receipt, derived again from its facts",
		Long: "Gate passes only a receipt whose governance conclusion, derived again, is satisfied, whose release requirements all\n" +
			"held, and which is bound to a yardstick from outside: --team FILE, --plan FILE or --policy FILE.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("gate takes one receipt, and %d were given; the team goes after --team", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.format != "" && cmd.Flags().Changed("output") && f.output != f.format {
				return usage("--format %s and -o %s exclude each other", f.format, f.output)
			}
			return a.gate(args[0], &f)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.team, "team", "", "the team file the run must have been of")
	fl.StringVar(&f.plan, "plan", "", "the saved plan the run must have been of")
	fl.StringVar(&f.events, "events", "", "the run's event log (default: events.jsonl beside the receipt, else that of the run in the state folder)")
	fl.StringVar(&f.state, "state", "", "the folder the run was kept in (OMA_STATE)")
	fl.BoolVar(&f.noLog, "no-log", false, "let a receipt pass without its event log")
	fl.BoolVar(&f.tree, "tree", false, "hold the files that required roles looked at against what is there now")
	fl.BoolVar(&f.unbound, "unbound", false, "let a receipt vouch for itself")
	fl.BoolVar(&f.notApplicable, "allow-not-applicable", false, "let a run pass that required nothing")
	fl.BoolVar(&f.requireSigned, "require-signed", false, "fail a receipt without a signature by --key")
	fl.StringVar(&f.key, "key", "", "the public key in PEM that the receipt must be signed with")
	fl.StringVar(&f.signature, "signature", "", "the signature (default: RECEIPT"+envelopeSuffix+")")
	fl.StringVar(&f.artifact, "artifact", "", "the file or folder that is released: it must be what was signed for")
	fl.StringVar(&f.format, "format", "", "text, json, junit or github")
	fl.StringVarP(&f.output, "output", "o", "text", "the same as --format")
	return cmd
}

func (a *app) gate(path string, f *gateFlags) error {
	if f.format == "" {
		f.format = f.output
	}
	render, ok := report.Formats()[f.format]
	if !ok {
		return usage("--format %q is not text, json, junit or github", f.format)
	}
	switch {
	case f.noLog && f.events != "":
		return usage("--no-log and --events exclude each other")
	case f.state != "" && f.events != "":
		return usage("--state and --events exclude each other: both say where the event log is")
	}
	o := runtime.GateOptions{NoLog: f.noLog, Unbound: f.unbound, AllowNotApplicable: f.notApplicable, RequireSigned: f.requireSigned,
		Known: catalog().Tools}
	var err error
	if o.Policies, err = a.aboveAlone(&f.teamFlags); err != nil {
		return err
	}
	c, err := a.yardstick(f)
	if err != nil {
		return err
	}
	if c != nil {
		o.Plan = c.plan
	}
	if f.tree {
		if o.Tree, err = a.treesNow(c, path, f); err != nil {
			return err
		}
	}
	if err := a.evidence(path, f, &o); err != nil {
		return err
	}
	v := a.verdict(path, f, o)
	if err := render(a.stdout, v); err != nil {
		return err
	}
	if f.format == "github" {
		if err := a.stepSummary(v); err != nil {
			return err
		}
	}
	return ended(v.ExitCode)
}

// evidence says which signature and which artifact the receipt is held against, where that is asked for.
func (a *app) evidence(path string, f *gateFlags, o *runtime.GateOptions) error {
	s := &signature{artifact: f.artifact, without: append(evidenceOf(path, ""), f.events, f.state)}
	switch {
	case f.requireSigned && f.key == "":
		return usage("--require-signed needs --key FILE, the public key that the receipt must be signed with")
	case !f.requireSigned && f.key != "":
		return usage("--key belongs to --require-signed")
	case !f.requireSigned && f.signature != "":
		return usage("--signature belongs to --require-signed")
	case f.requireSigned:
		var err error
		if s, err = a.signature(path, f.key, f.signature, f.artifact); err != nil {
			return err
		}
		o.Signature = s.verify
	}
	if f.artifact != "" {
		o.Artifact = s.differs
	}
	return nil
}

// verdict decides about the receipt at a path. A receipt or a log that cannot be read is missing, whatever the cause.
func (a *app) verdict(path string, f *gateFlags, o runtime.GateOptions) *runtime.GateVerdict {
	data, err := a.readInput(path)
	if err != nil {
		return runtime.NoReceipt(fmt.Sprintf("the receipt cannot be read: %v", cause(err)))
	}
	if f.noLog {
		return runtime.Gate(data, o)
	}
	log, err := a.openLog(path, data, f)
	if err != nil {
		a.say("the event log cannot be read: %v", err)
	}
	if log != nil {
		defer log.Close()
		o.Log = log
	}
	return runtime.Gate(data, o)
}

// cause is an error without the path and the operation, which the message names by itself.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// yardstick gives the gate a plan from outside the receipt, with the folder its paths are relative to. nil: none was given.
func (a *app) yardstick(f *gateFlags) (*compiled, error) {
	flag := f.given()
	if f.plan == "" {
		flag = f.givenOrRequired()
	}
	switch {
	case f.team != "" && f.plan != "":
		return nil, usage("--team and --plan exclude each other")
	case f.team == "" && flag != "":
		return nil, usage("--%s belongs to --team FILE", flag)
	case f.team != "":
		return a.compile(f.team, &f.teamFlags)
	case f.plan == "":
		return nil, nil
	}
	data, err := readFile(f.plan)
	if err != nil {
		return nil, usage("--plan: %v", err)
	}
	p, err := runtime.ReadPlan(data)
	if err != nil {
		return nil, badPlan(f.plan, err)
	}
	if err := a.under(f.plan, p, &f.teamFlags); err != nil {
		return nil, err
	}
	return &compiled{plan: p, file: f.plan, dir: filepath.Dir(f.plan)}, a.problems(inFile(f.plan, notEnforced(p, f.require)), false)
}

// treesNow looks at the folders of the plan as they are, without the evidence that may lie in them.
func (a *app) treesNow(c *compiled, receipt string, f *gateFlags) (func(string) (string, error), error) {
	if c == nil {
		return nil, usage("--tree belongs to --team FILE or --plan FILE")
	}
	w, err := a.newWiring(c)
	if err != nil {
		return nil, err
	}
	if w.outputs, err = absolute(append(evidenceOf(receipt, f.signature), f.events, f.state)); err != nil {
		return nil, err
	}
	return func(cwd string) (string, error) { return w.tree(context.Background(), &spec.PlanAgent{Cwd: cwd}) }, nil
}

// logName is what the event log of a run is called in the run's folder.
const logName = "events.jsonl"

func besideReceipt(receipt string) string { return filepath.Join(filepath.Dir(receipt), logName) }

// openLog opens the event log that was named. Otherwise it is the one beside the receipt, else that of the run in the
// state folder; without either there is none.
func (a *app) openLog(path string, receipt []byte, f *gateFlags) (*os.File, error) {
	if f.events != "" {
		return openRegular(f.events)
	}
	if path != "-" {
		log, err := openRegular(besideReceipt(path))
		if !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
	}
	kept, ok := a.keptLog(receipt, f)
	if !ok {
		return nil, nil
	}
	log, err := openRegular(kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return log, err
}

// keptLog is where the run of a receipt keeps its log unless somebody moves it. Without a team file or a plan there is no
// project, and only a state folder that is named.
func (a *app) keptLog(receipt []byte, f *gateFlags) (path string, ok bool) {
	var r struct {
		RunID string `json:"runId"`
	}
	if json.Unmarshal(receipt, &r) != nil || r.RunID == "" || filepath.Base(r.RunID) != r.RunID || !filepath.IsLocal(r.RunID) {
		return "", false
	}
	yardstick := cmp.Or(f.team, f.plan)
	if yardstick == "" && f.state == "" && a.getenv("OMA_STATE") == "" {
		return "", false
	}
	project, err := filepath.Abs(filepath.Dir(yardstick))
	if err != nil {
		return "", false
	}
	state, err := a.stateDir(f.state, project)
	if err != nil {
		return "", false
	}
	return filepath.Join(state, "runs", r.RunID, logName), true
}

// openRegular opens a regular file only: a pipe could keep the gate waiting for ever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// stepSummary appends a page to the summary of a GitHub job, where there is one.
func (a *app) stepSummary(v *runtime.GateVerdict) error {
	path := a.getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("the step summary cannot be written: %w", err)
	}
	return errors.Join(report.Summary(f, v), f.Close())
}
