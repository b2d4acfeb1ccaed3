package shell

import (
	"slices"
	"strings"
)

// wrapper is a program that starts the command in its arguments.
type wrapper struct {
	name      string
	flags     string // short options without a value
	values    string // with one: the rest of the word, or else the next word
	optional  string // with one only if it is the rest of the word
	long      string // long options without a value, or with one after =; spaces around each
	longVal   string // with one, which may be the next word
	operands  int    // before the command
	assigns   bool   // NAME=value may stand before the command
	code      string // options whose value is run as shell
	joined    bool   // the command is joined by spaces and run as shell
	level     string // of the wrapper by itself; empty: it adds nothing
	findings  string // code of level
	reason    string
	looksUp   string // options that only look for the command
	writesOpt string // options that write a file
	moves     string // options that change the directory the command acts in
}

// wrappers are by name. Their long options may be abbreviated.
var wrappers = [...]wrapper{
	{name: "--"}, // what is left of time -- ls, which bash runs as ls
	{name: "builtin"},
	{name: "busybox"},
	{name: "chroot", long: " skip-chdir ", longVal: " userspec groups ", operands: 1, level: Review, findings: "other-root", reason: "runs a command in another root"},
	{name: "command", flags: "p", looksUp: "vV"},
	{name: "doas", flags: "Lns", values: "aCu"},
	{name: "env", flags: "i0v", values: "auCPS", moves: "C", long: " ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling ",
		longVal: " argv0 unset chdir split-string ", assigns: true, code: "S"},
	{name: "exec", flags: "cl", values: "a"},
	{name: "flock", flags: "sxnuoF", values: "wEc", long: " shared exclusive nonblock unlock close no-fork verbose ", longVal: " timeout wait conflict-exit-code command ",
		operands: 1, code: "c", level: Review, findings: "changes-files", reason: "writes a lock file"},
	{name: "ionice", flags: "t", values: "cn", long: " ignore ", longVal: " class classdata "},
	{name: "nice", flags: "0123456789", values: "n", longVal: " adjustment "},
	{name: "nohup"},
	{name: "nsenter", level: Review, findings: "other-root", reason: "runs a command in another namespace"},
	{name: "parallel", level: Review, findings: "runs-text", reason: "runs commands that it reads"},
	{name: "pkexec", longVal: " user "},
	{name: "runuser", values: "cugGs", flags: "lmpP", long: " login preserve-environment ", longVal: " command user group shell ", code: "c"},
	{name: "script", flags: "aefqr", values: "cEIOBTtm", long: " append flush return force quiet ", longVal: " command echo log-in log-out log-io ", code: "c",
		operands: 1, level: Review, findings: "changes-files", reason: "writes a file"},
	{name: "setsid", flags: "cfw", long: " ctty fork wait "},
	{name: "stdbuf", values: "ioe", longVal: " input output error "},
	{name: "strace", flags: "cCdfhikqrtTvVwxyzZ", values: "aEeIoOpPsSuUX", level: Review, findings: "traces", reason: "reads what a command does"},
	{name: "su", flags: "lmpP", values: "cgGs", long: " login preserve-environment pty ", longVal: " command group shell ", operands: 1, code: "c"},
	{name: "sudo", flags: "AbEeHiKklnPSsvBN", values: "ugpCcrtThDRU", assigns: true, longVal: " user group prompt close-from role type chdir chroot host other-user command-timeout login-class ",
		long: " askpass background preserve-env edit set-home login list non-interactive preserve-groups stdin shell validate reset-timestamp remove-timestamp bell "},
	{name: "time", flags: "pvaqV", values: "fo", long: " portability verbose append quiet ", longVal: " format output ", writesOpt: "o"},
	{name: "timeout", flags: "vfp", values: "ks", long: " preserve-status foreground verbose ", longVal: " kill-after signal ", operands: 1},
	{name: "toybox"},
	{name: "unshare", flags: "mupUiCTrfcn", level: Review, findings: "other-root", reason: "runs a command in another namespace"},
	{name: "watch", flags: "bcdeghtwx", values: "nq", long: " beep color differences errexit chgexit no-title no-wrap exec precise ", longVal: " interval equexit ", joined: true,
		level: Review, findings: "runs-text", reason: "runs text as a command"},
	{name: "xargs", flags: "0optrx", optional: "eil", values: "adEILnPsJRS", long: " null open-tty interactive no-run-if-empty exit verbose show-limits replace max-lines eof ",
		longVal: " arg-file delimiter max-args max-procs max-chars process-slot-var "},
}

func wrapperNamed(name string) (*wrapper, bool) {
	i, ok := slices.BinarySearchFunc(wrappers[:], name, func(r wrapper, s string) int { return strings.Compare(r.name, s) })
	if !ok {
		return nil, false
	}
	return &wrappers[i], true
}

// wrapper looks through a program that starts another. False: the command is none.
func (w *walker) wrapper(c *call) bool {
	r, ok := wrapperNamed(c.name)
	if !ok {
		return false
	}
	if r.level != "" {
		c.flag(r.level, r.findings, quote(c.name)+" "+r.reason)
	}
	u := unwrapper{wrapper: r, w: w, c: c, left: r.operands}
	rest := u.split(c.args())
	if u.lookup {
		return true
	}
	switch {
	case c.name == "xargs":
		w.xargs(c, u.given, rest)
	case c.name == "parallel":
		c.parallel(rest)
	case c.name == "flock" && len(rest) > 1 && rest[0].literal("-c"):
		c.runs(rest[1], input{})
	case r.joined && len(rest) > 0:
		parts := make([]string, 0, len(rest))
		for _, x := range rest {
			parts = append(parts, x.skeleton())
		}
		c.code = append(c.code, code{strings.Join(parts, " "), input{}})
	case len(rest) > 0:
		c.starts(rest)
	}
	return true
}

// unwrapper finds the command in a wrapper's arguments.
type unwrapper struct {
	*wrapper
	w      *walker
	c      *call
	left   int // operands to come
	given  []value
	lookup bool
}

// split gives the words from the command on.
func (u *unwrapper) split(args []word) []word {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.dynamic && a.mayBeOption() && u.left > 0:
			u.c.flag(Review, "dynamic-option", quote(u.c.name)+" may receive an option by "+quote(a.text))
			u.left--
		case a.literal("--"):
			return u.rest(args[i+1:])
		case !a.dynamic && len(a.text) > 1 && a.text[0] == '-' || u.name == "env" && a.literal("-"):
			i += u.option(a.text, args[i+1:])
		case u.assigns && u.assignment(a):
		case u.left > 0:
			return u.rest(args[i:])
		default:
			return args[i:]
		}
	}
	return nil
}

// rest skips the operands and assignments that are left, after which there are no options.
func (u *unwrapper) rest(args []word) []word {
	args = args[min(u.left, len(args)):]
	for u.assigns && len(args) > 0 && u.assignment(args[0]) {
		args = args[1:]
	}
	return args
}

// assignment judges NAME=value.
func (u *unwrapper) assignment(a word) bool {
	text, _ := a.path()
	name, _, ok := strings.Cut(text, "=")
	if !ok || a.dynamic && a.split {
		return false
	}
	u.w.named(u.c.node, name, true)
	return true
}

// option reads one option, and gives how many of the next words are its value.
func (u *unwrapper) option(text string, next []word) int {
	if long, ok := strings.CutPrefix(text, "--"); ok {
		name, v, has := strings.Cut(long, "=")
		switch {
		case strings.Contains(u.longVal, " "+name):
			if has {
				u.value(name, word{text: v})
				return 0
			}
			return u.take(name, next)
		case !strings.Contains(u.long, " "+name):
			u.c.flag(Review, "unknown-option", quote(u.c.name)+" has the option "+quote(text)+", which is not known")
		case has:
			u.value(name, word{text: v})
		}
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch ch := text[i : i+1]; {
		case strings.Contains(u.looksUp, ch):
			u.lookup = true
		case strings.Contains(u.optional, ch):
			u.value(ch, word{text: text[i+1:]})
			return 0
		case strings.Contains(u.values, ch):
			if rest := text[i+1:]; rest != "" {
				u.value(ch, word{text: rest})
				return 0
			}
			return u.take(ch, next)
		case !strings.Contains(u.flags, ch):
			u.c.flag(Review, "unknown-option", quote(u.c.name)+" has the option "+quote(text)+", which is not known")
			return 0
		}
	}
	return 0
}

func (u *unwrapper) take(option string, next []word) int {
	if len(next) == 0 {
		return 0
	}
	if next[0].dynamic && next[0].split {
		u.c.flag(Review, "dynamic-option", quote(u.c.name)+" may receive options by "+quote(next[0].text))
	}
	u.value(option, next[0])
	return 1
}

func (u *unwrapper) value(option string, v word) {
	u.given = append(u.given, value{option, v})
	short := option[:1]
	if option == "split-string" {
		short = "S"
	}
	if u.code != "" && strings.Contains(u.code, short) && (len(option) == 1 || option == "split-string" || strings.HasPrefix("command", option)) {
		if u.level == "" {
			u.c.flag(Review, "runs-text", quote(u.c.name)+" runs text as a command")
		}
		u.c.runs(v, input{})
	}
	switch {
	case u.writesOpt != "" && strings.Contains(u.writesOpt, short):
		u.c.writesTo(u.w, v, Review)
	case u.moves != "" && (option == u.moves || strings.HasPrefix("chdir", option)):
		u.c.flag(Review, "changes-directory", quote(u.c.name)+" changes the directory that the command acts in")
	case len(option) > 1 && strings.HasPrefix("process-slot-var", option):
		u.w.named(u.c.node, v.text, true)
	}
}
