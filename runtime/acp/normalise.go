package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	protocol "github.com/coder/acp-go-sdk"
)

// Bounds of what is judged.
const (
	maxPaths  = 100      // that one request may name
	maxPath   = 4096     // bytes
	maxJudged = 64 << 10 // bytes of a title or a command
)

// facts are what is judged of a call. They are copied by value; lists in them are replaced and never changed.
type facts struct {
	title, kind string
	input       named
	content     named
	locations   named
}

// named is what one member of a call names.
type named struct {
	command   string
	isCommand bool
	paths     []string // each once, as they are shown
	fault     string   // why it cannot be judged. Empty: it can
}

// update takes over the members that were sent.
func (f *facts) update(dir string, u *callUpdate) {
	if u.Title != nil {
		f.title = *u.Title
		if len(f.title) > maxJudged { // longer than what is judged, and so refused
			f.title = f.title[:maxJudged+1]
		}
	}
	if u.Kind != nil {
		f.kind = *u.Kind
	}
	if !isNull(u.Input) {
		f.input = namedInInput(dir, u.Input)
	}
	if !isNull(u.Content) {
		f.content = namedInList(dir, u.Content)
	}
	if !isNull(u.Locations) {
		f.locations = namedInList(dir, u.Locations)
	}
}

// normalise gives what an agent asks for, once for each path it names and at least once. Members that the request lacks
// are taken from what is known of its call. The reason says why it cannot be allowed, whoever is asked; empty: it can.
func normalise(dir string, req *permissionRequest, whole facts) (asked []Permission, reason string) {
	whole.update(dir, &req.Call)
	p := Permission{CallID: req.Call.ID, Title: whole.title, Kind: kindOf(whole.kind), OptionKinds: []string{}}
	for _, option := range req.Options {
		p.OptionKinds = append(p.OptionKinds, clip(option.Kind, maxName))
	}
	switch {
	case whole.input.isCommand:
		p.Command, p.Kind = whole.input.command, string(protocol.ToolKindExecute) // whatever the agent calls it
	case p.Kind == string(protocol.ToolKindExecute):
		p.Command, p.CommandFromTitle = unquoted(p.Title), true
	}
	paths := slices.Clip(whole.input.paths)
	for _, more := range [][]string{whole.content.paths, whole.locations.paths} {
		for _, path := range more {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	reason = cmp.Or(whole.input.fault, whole.content.fault, whole.locations.fault)
	switch {
	case reason != "":
	case len(p.Title) > maxJudged, len(p.Command) > maxJudged:
		reason = "it is too long to be judged"
	case len(paths) > maxPaths:
		reason = manyPaths
	case p.Kind == string(protocol.ToolKindExecute) && strings.TrimSpace(p.Command) == "":
		reason = "it names no command"
	}
	if len(paths) == 0 || reason != "" {
		return []Permission{p}, reason
	}
	for _, one := range paths {
		p.Path = one
		asked = append(asked, p)
	}
	return asked, ""
}

const manyPaths = "it names more paths than are judged at once"

// kindOf gives a kind that rules know.
func kindOf(kind string) string {
	switch k := protocol.ToolKind(kind); k {
	case protocol.ToolKindRead, protocol.ToolKindEdit, protocol.ToolKindDelete, protocol.ToolKindMove, protocol.ToolKindSearch,
		protocol.ToolKindExecute, protocol.ToolKindThink, protocol.ToolKindFetch:
		return kind
	}
	return string(protocol.ToolKindOther)
}

// commandOf finds the command in an input. ok is false where there is one in no form that is understood.
func commandOf(input map[string]any) (command string, found, ok bool) {
	for _, name := range []string{"command", "cmd"} {
		v, there := input[name]
		if !there || v == nil {
			continue
		}
		if found { // both: which of them is run is not known
			return "", true, false
		}
		found = true
		if command, ok = commandText(v); !ok {
			return "", true, false
		}
		if args, is := input["args"]; is && args != nil {
			more, isList := words(args)
			if !isList {
				return "", true, false
			}
			for _, arg := range more {
				command += " " + quote(arg)
			}
		}
	}
	return command, found, true
}

func commandText(v any) (string, bool) {
	if text, ok := v.(string); ok {
		return text, strings.TrimSpace(text) != ""
	}
	argv, ok := words(v)
	if !ok || len(argv) == 0 {
		return "", false
	}
	if len(argv) == 3 && isShell(argv[0]) && isRunFlag(argv[1]) {
		return argv[2], strings.TrimSpace(argv[2]) != ""
	}
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " "), true
}

func words(v any) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(list))
	for i, item := range list {
		if out[i], ok = item.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

func isShell(program string) bool {
	switch path.Base(program) {
	case "sh", "bash", "dash", "zsh", "ksh":
		return true
	}
	return false
}

// isRunFlag knows -c, alone or with the flags of a login or an interactive shell.
func isRunFlag(flag string) bool {
	return len(flag) > 1 && flag[0] == '-' && strings.HasSuffix(flag, "c") && strings.Trim(flag[1:len(flag)-1], "lie") == ""
}

// quote gives a word as a shell reads it whole.
func quote(word string) string {
	plain := word != "" && strings.Trim(word, letters+digits+"_-./:@%+,") == ""
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// unquoted takes a pair of backquotes off a title that is one quoted command.
func unquoted(title string) string {
	if n := len(title); n > 2 && title[0] == '`' && title[n-1] == '`' && strings.Count(title, "`") == 2 {
		return title[1 : n-1]
	}
	return title
}

// pathNames are the members of an input that name a file or a folder, in the spelling of one agent or another.
func pathNames() []string {
	return []string{"path", "file_path", "filePath", "filepath", "absolute_path", "notebook_path", "old_path", "new_path", "source", "destination",
		"directory", "dir_path"}
}

func namedInInput(dir string, raw json.RawMessage) (n named) {
	var input map[string]any
	if json.Unmarshal(raw, &input) != nil {
		n.fault = "its input is not an object"
		return n
	}
	var ok bool
	n.command, n.isCommand, ok = commandOf(input)
	switch {
	case !ok:
		n.fault = "its command is not understood"
	case len(n.command) > maxJudged:
		n.command, n.fault = "", "its command is too long to be judged"
	}
	for _, name := range pathNames() {
		switch v := input[name].(type) {
		case nil:
		case string:
			n.add(dir, v)
		default:
			n.fault = "its paths are not understood"
		}
	}
	if changes, is := input["changes"].(map[string]any); is { // of a patch, by path
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			n.add(dir, name)
		}
	}
	return n
}

// namedInList reads content and locations alike: what has a path in it names it.
func namedInList(dir string, raw json.RawMessage) (n named) {
	var list []struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(raw, &list) != nil {
		n.fault = "its paths are not understood"
	}
	for _, item := range list {
		n.add(dir, item.Path)
	}
	return n
}

func (n *named) add(dir, path string) {
	switch {
	case path == "":
		return
	case len(n.paths) == maxPaths:
		n.fault = manyPaths
		return
	case len(path) > maxPath || !utf8.ValidString(path) || strings.ContainsRune(path, 0):
		n.fault = "its paths are not understood"
		return
	}
	if shown := shownPath(dir, path); !slices.Contains(n.paths, shown) {
		n.paths = append(n.paths, shown)
	}
}

// shownPath gives a path as rules see those of the file tools.
func shownPath(dir, p string) string {
	abs := filepath.FromSlash(p)
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(dir, abs)
	}
	abs = filepath.Clean(abs)
	if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(abs)
}
