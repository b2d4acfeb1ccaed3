package shell

import "strings"

// Global options of git that change nothing about safety, and those with a value.
const (
	gitInert  = " --no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-replace-objects -P "
	gitValued = " -c -C --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source --list-cmds "
)

// subcommand gives the first word of git that is no global option, and its arguments. Empty: there is none.
func (c *call) subcommand() (string, []word) {
	args := c.args()
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.dynamic:
			return "", nil
		case strings.Contains(gitValued, " "+a.text+" "):
			i++
		case !strings.HasPrefix(a.text, "-"):
			return a.text, args[i+1:]
		}
	}
	return "", nil
}

// git judges a subcommand behind the global options.
func (w *walker) git(c *call) {
	sub, args := c.subcommand()
	for _, a := range c.args() {
		if a.dynamic || !strings.HasPrefix(a.text, "-") {
			break
		}
		if a.text == "--version" || a.text == "-v" {
			return
		}
		if !strings.Contains(gitInert, " "+a.text+" ") {
			c.flag(Review, "unsafe-option", `"git" with `+quote(a.text)+" before the subcommand may run other code or act elsewhere")
			break
		}
	}
	switch sub {
	case "":
		if len(c.args()) > 0 {
			c.flag(Review, "unknown-command", "the subcommand of git is not known")
		}
	case "status", "log", "diff", "show", "rev-parse", "describe", "blame", "ls-files", "ls-tree", "rev-list", "merge-base", "show-ref", "shortlog":
		c.gitReads(sub, args)
	case "branch", "tag":
		c.gitRefs(sub, args)
	case "remote":
		c.gitRemote(args)
	case "config":
		c.gitConfig(args)
	case "push":
		c.gitPush(args)
	case "version":
	default:
		c.gitChanges(sub)
	}
}

// gitReads judges what prints history, differences and files. Only values that are always the next word are listed: any
// other word may be an option that writes.
func (c *call) gitReads(sub string, args []word) {
	o := options{riskyLong: " output ext-diff textconv show-signature "}
	switch sub {
	case "log", "show":
		o.values = "nSGlOL"
	case "diff", "rev-list":
		o.values = "nSGlO"
	}
	if o.values != "" {
		o.longValues = " grep author since until after before max-count skip "
	}
	c.risks(o.scan(args))
	for _, a := range args {
		if strings.Contains(a.text, "%G") {
			c.flag(Review, "unsafe-option", `"git" runs a program that checks signatures for `+quote(a.text))
			return
		}
	}
}

func (c *call) gitChanges(sub string) {
	switch sub {
	case "clean", "reset", "restore", "checkout", "stash", "rm", "switch":
		c.flag(Review, "discards-work", quote("git "+sub)+" can discard work that is not committed")
	case "clone", "fetch", "pull", "ls-remote", "submodule":
		c.flag(Review, "network", quote("git "+sub)+" talks to the network")
	case "commit", "add", "merge", "rebase", "cherry-pick", "revert", "apply", "am", "mv", "init", "worktree", "notes", "gc":
		c.flag(Review, "changes-files", quote("git "+sub)+" changes the repository")
	default:
		c.flag(Review, "unknown-command", quote("git "+sub)+" is not known to be safe")
	}
}

// gitRefs: branch and tag list, or create, move and delete.
func (c *call) gitRefs(sub string, args []word) {
	o := options{longValues: " sort format points-at "}
	safe := "arvil"
	if sub == "tag" {
		safe = "nil0123456789"
	}
	s := o.scan(args)
	listing := s.has("l", "") || sub == "tag" && s.has("n", "")
	for _, name := range s.longs {
		switch name {
		case "list", "contains", "no-contains", "merged", "no-merged", "points-at":
			listing = true
		case "all", "remotes", "verbose", "show-current", "sort", "format", "column", "no-column", "color", "no-color", "abbrev", "no-abbrev", "ignore-case", "omit-empty":
		default:
			c.flag(Review, "changes-refs", quote("git "+sub+" --"+name)+" is not known to only list")
			return
		}
	}
	switch {
	case strings.Trim(s.shorts, safe) != "":
		c.flag(Review, "changes-refs", quote("git "+sub)+" does more than list with -"+strings.TrimLeft(s.shorts, safe)[:1])
	case s.unknown != "":
		c.risks(s)
	case len(s.operands) > 0 && !listing:
		c.flag(Review, "changes-refs", quote("git "+sub)+" creates "+quote(s.operands[0].text))
	}
}

func (c *call) gitRemote(args []word) {
	switch {
	case len(args) == 0, len(args) == 1 && (args[0].literal("-v") || args[0].literal("--verbose") || args[0].literal("show")):
	case args[0].literal("get-url"):
		c.risks(options{}.scan(args))
	case args[0].literal("show"):
		c.flag(Review, "network", `"git remote show" asks the remote`)
	default:
		c.flag(Review, "changes-refs", `"git remote" changes the remotes`)
	}
}

// gitConfig: one operand is read, two are written, unless an option or the first word says so.
func (c *call) gitConfig(args []word) {
	o := options{values: "f", longValues: " file type default blob "}
	s := o.scan(args)
	reading := s.has("l", "")
	for _, name := range s.longs {
		switch name {
		case "get", "get-all", "get-regexp", "get-urlmatch", "list":
			reading = true
		case "global", "system", "local", "worktree", "file", "blob", "show-origin", "show-scope", "null", "name-only", "type", "bool", "int", "path", "default", "includes",
			"no-includes", "no-type", "bool-or-int", "expiry-date":
		default:
			c.flag(Review, "changes-config", `"git config" with `+quote("--"+name)+" is not known to only read")
			return
		}
	}
	operands := len(s.operands)
	if operands > 0 && (s.operands[0].literal("get") || s.operands[0].literal("list")) {
		reading = true
	}
	switch {
	case strings.Trim(s.shorts, "lzf") != "" || s.unknown != "":
		c.flag(Review, "changes-config", `"git config" may change the configuration`)
	case !reading && (operands != 1 || s.split):
		c.flag(Review, "changes-config", `"git config" changes the configuration`)
	}
}

// gitPush: what replaces or deletes what others have is high.
func (c *call) gitPush(args []word) {
	o := options{values: "o", longValues: " repo push-option receive-pack exec ", risky: "fd", riskyLong: " force force-with-lease mirror delete prune "}
	s := o.scan(args)
	switch {
	case s.risky != "":
		c.flag(High, "force-push", `"git push" with `+quote(s.risky)+" replaces or deletes what the remote has")
		return
	case s.has("", "receive-pack"), s.has("", "exec"):
		c.flag(Review, "unsafe-option", `"git push" names a program to run`)
	}
	for _, x := range s.operands {
		if head, _ := x.path(); head != "" && (x.dynamic || len(head) > 1) && (head[0] == '+' || head[0] == ':') {
			c.flag(High, "force-push", `"git push" with `+quote(x.text)+" replaces or deletes what the remote has")
			return
		}
	}
	c.flag(Review, "network", `"git push" sends commits to the remote`)
}
