package shell

// The risk of a command, weakest first.
const (
	Safe   = "safe"   // reads, and starts nothing that is not known to read
	Review = "review" // changes something, or cannot be known by reading
	High   = "high"   // destroys, escalates, publishes, or runs what nobody has read
)

// Facts is what the text of a command says about it. Lists are never nil and are in the order of the text: what is
// inside a substitution comes before the command that receives its output, what a wrapper starts comes after the wrapper.
type Facts struct {
	Risk   string // the worst of Findings, Safe if there is none
	Reason string // why, of the first of the worst findings; never empty
	// Findings are the reasons for a risk above Safe. At most 64, of which the last then says so; every code there is, at
	// every level it has, is among them.
	Findings []Finding
	// Commands are the simple commands found anywhere: in substitutions, in the text given to bash -c, behind wrappers
	// such as timeout, in bodies of functions never called. At most 1024; a finding says when there are more.
	Commands  []Command
	Redirects []Redirect // of files, file descriptors and here documents; as many as Commands at most
	// Writes are the literal paths known to be written, as far as quotes are removed and ~ is kept: targets of
	// redirects, and what tee, cp, sed -i and the like are given. A path that is not literal is not among them.
	Writes          []string
	Network         bool // a command or redirect talks to the network
	HasSubstitution bool // $( ), ` `, <( ) or >( )
	Background      bool // &, or a coprocess
	// Incomplete says that a list above would hold more than 1024 entries, and holds the first. Whoever looks for something
	// that must not be there cannot know. The risk is of everything all the same.
	Incomplete bool
	ParseError bool // not valid bash, too long or too deep to read: the other facts are of the part that was read
}

// Finding is one reason for a risk above Safe.
type Finding struct {
	Level  string // Review or High
	Code   string // stable, kebab-case
	Reason string // never empty
	// Line and Column are those of the command, in bytes from 1. In the text of bash -c and the like, they are those of
	// the command that was given the text.
	Line, Column int
	Text         string // of the command, cut at 120 bytes
}

// Command is one simple command: a program, builtin or function with its arguments.
type Command struct {
	Name string // of the program without its directory and quotes. Empty: not known before it runs, or an empty word
	Path string // the first word without quotes. Not literal: its source text
	// Args are the words after the first, without quotes and with braces expanded. One that is not literal is its source
	// text, and its index is in DynamicArgs: compare an argument only if it is not.
	Args        []string
	DynamicArgs []int    // sorted
	Dynamic     bool     // the name or some argument is not literal: a variable, a substitution, a file name pattern
	Assignments []string // names set for this command only
	Line        int      // from 1; see Finding
	Column      int
}

// Redirect is one redirection of a statement.
type Redirect struct {
	Op     string // as written: > >> < <> >& &> << <<< …
	FD     string // as written before the operator: a number, or {name}. Empty: the operator's own
	Target string // the file or descriptor, without quotes. Empty if not Known
	Known  bool   // Target is literal
}

// Codes gives every code that a finding can have, sorted.
func Codes() []string {
	return []string{
		"changes-config", "changes-directory", "changes-files", "changes-refs", "declares", "defines-function",
		"destructive", "discards-work", "dynamic-code", "dynamic-command", "dynamic-option", "empty",
		"evaluates-text", "extended-pattern", "force-push", "fork-bomb", "indirect", "interactive", "level",
		"loads-code", "network", "odd-characters", "other-root", "path-changed", "permissions", "pipe-to-shell",
		"privilege", "processes", "publishes", "recursive", "runs-download", "runs-file", "runs-program",
		"runs-project", "runs-text", "starts-shell", "stores-code", "system-path", "too-deep", "too-long",
		"too-many", "traces", "trusted-path", "unclear-comment", "unclear-quotes", "unknown-command",
		"unknown-option", "unknown-path", "unparsed", "unsafe-option", "unsafe-script", "writes", "writes-file",
	}
}
