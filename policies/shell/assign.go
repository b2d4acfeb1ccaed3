package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign walks and judges one assignment. exported says that a command receives it in its environment.
func (w *walker) assign(a *syntax.Assign, exported bool) {
	if a.Index != nil {
		w.arith(a.Index)
	}
	if a.Value != nil {
		w.parts(a.Value.Parts, false)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				w.arith(e.Index)
			}
			if e.Value != nil {
				w.parts(e.Value.Parts, false)
			}
		}
	}
	if a.Name == nil {
		return
	}
	w.variable(a.Name, exported)
	if a.Array != nil || a.Index != nil || a.Value != nil && (a.Append || !w.numbers([]*syntax.Word{a.Value})) {
		w.assigned = append(w.assigned, a.Name.Value)
	}
}

// variable judges a name that is given a value.
func (w *walker) variable(n *syntax.Lit, exported bool) { w.named(n, n.Value, exported) }

func (w *walker) named(at syntax.Node, name string, exported bool) {
	switch {
	case redirects(name):
		w.flag(at, Review, "path-changed", "the variable "+quote(name)+" changes what commands mean")
	case loads(name), exported && steers(name):
		w.flag(at, Review, "loads-code", "the variable "+quote(name)+" can make a program run other code")
	}
}

// redirects says that the shell finds commands or splits words by a variable.
func redirects(name string) bool {
	switch name {
	case "PATH", "IFS", "HOME", "CDPATH", "ENV", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE", "EXECIGNORE", "PS0", "PS1", "PS2", "PS4", "POSIXLY_CORRECT",
		"histchars", "COMP_WORDBREAKS", "FPATH", "ZDOTDIR", "OLDPWD", "PWD":
		return true
	}
	return strings.HasPrefix(name, "BASH")
}

// loads says that programs run code because of a variable. If the environment has it already, assigning is enough.
func loads(name string) bool {
	switch name {
	case "EDITOR", "VISUAL", "PAGER", "BROWSER", "SHELL", "LESSOPEN", "LESSCLOSE", "MANPAGER", "MANOPT", "GCONV_PATH", "LOCPATH", "TERMINFO", "TERMCAP",
		"SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR", "RIPGREP_CONFIG_PATH", "RUSTC_WRAPPER", "MAKEFLAGS", "GREP_OPTIONS", "TAR_OPTIONS", "MAGIC",
		"PROMPT_COMMAND", "TEXTDOMAIN", "TEXTDOMAINDIR", "XDG_CONFIG_HOME", "LOCALDOMAIN", "HOSTALIASES", "_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "TMPDIR":
		return true
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "NODE_OPT", "NODE_PATH", "NODE_REPL", "PYTHON", "PERL", "RUBY", "npm_config_", "NPM_CONFIG_",
		"GLIBC_", "MALLOC_", "AWK", "GAWK", "LUA_", "PHP"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// steers says that a name looks like one that a program is told by what to run or load.
func steers(name string) bool {
	name = strings.ToUpper(name)
	for _, suffix := range [...]string{"PATH", "OPT", "OPTS", "OPTIONS", "FLAGS", "PAGER", "EDITOR", "CMD", "COMMAND", "SHELL", "ASKPASS", "WRAPPER", "HOOK",
		"HOOKS", "LOADER", "PRELOAD", "CONFIG", "CONFIG_FILE", "CONFIG_DIR", "CONFIG_HOME", "CONFIG_GLOBAL", "RC", "LIB", "LIBS", "HOME", "PLUGINS", "STARTUP",
		"INIT", "SSH", "PROXY"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	for _, prefix := range [...]string{"GO", "CARGO_", "RUST", "JAVA_", "MAVEN_", "GRADLE_", "XDG_", "DOCKER_", "KUBE", "AWS_", "LESS"} {
		if strings.HasPrefix(name, prefix) && name != "GOOS" && name != "GOARCH" {
			return true
		}
	}
	return false
}

// declare walks export, declare and the like. Plain assignments by export and readonly are judged by their names;
// what else these commands do is not safe.
func (w *walker) declare(d *syntax.DeclClause) {
	name := d.Variant.Value
	c := &call{node: d, words: []word{{text: name}}, name: name, path: name, standard: true}
	plain := name == "export" || name == "readonly" || name == "local"
	for _, a := range d.Args {
		w.assign(a, true)
		x := word{text: w.source(a)}
		switch {
		case a.Naked && a.Name == nil: // an option, or a word that expands to anything
			plain = false
			x = w.word(a.Value)
			text, _ := x.path()
			if name, _, ok := strings.Cut(text, "="); ok {
				w.named(a, strings.TrimSuffix(name, "+"), true)
			}
			if strings.ContainsAny(text, "$`") { // in an index
				w.expansions(text, a)
			}
		case a.Value != nil:
			x.dynamic = w.word(a.Value).dynamic
		case a.Array != nil || a.Index != nil:
			x.dynamic = true
		}
		c.words = append(c.words, x)
	}
	w.record(c)
	if !plain {
		c.flag(Review, "declares", quote(name)+" can change what names mean")
	}
	w.settle(c)
	w.inside(c)
}
