package builtin

import (
	"github.com/open-multi-agent/oma/spec"
)

// The names of the tools, as teams and rules write them.
const (
	FileRead  = "file_read"
	FileWrite = "file_write"
	FileEdit  = "file_edit"
	Grep      = "grep"
	Glob      = "glob"
	Bash      = "bash"
)

// Presets gives the tools each preset grants. The caller may change the map.
func Presets() map[string][]string {
	return map[string][]string{
		"readonly":  {FileRead, Grep, Glob},
		"readwrite": {FileRead, Grep, Glob, FileWrite, FileEdit},
		"full":      {FileRead, Grep, Glob, FileWrite, FileEdit, Bash},
	}
}

// Infos describes the six tools, always in this order.
func Infos() []spec.ToolInfo {
	return []spec.ToolInfo{
		{Name: FileRead, ReadOnly: true, InputSchema: spec.Schema(fileReadSchema),
			Description: "Read a text file. Gives its lines as NUMBER<tab>TEXT, numbered from 1. Use offset and limit for a part of a long file. " +
				"Takes regular files up to 10 MiB; binary files are refused."},
		{Name: FileWrite, Consequential: true, InputSchema: spec.Schema(fileWriteSchema),
			Description: "Write a file whole, replacing what it held. Makes missing folders. To change a part of a file, use file_edit."},
		{Name: FileEdit, Consequential: true, InputSchema: spec.Schema(fileEditSchema),
			Description: "Replace text in a file. old_string must be in the file exactly once, white space included and without the line numbers " +
				"that file_read adds; give more context around it, or set replace_all. Both texts are taken literally."},
		{Name: Grep, ReadOnly: true, InputSchema: spec.Schema(grepSchema),
			Description: "Search file contents, line by line, with a regular expression in RE2 syntax (no lookaround, no backreferences; (?i) ignores case). " +
				"Gives PATH:LINE:TEXT, sorted by path. Stops after 30 seconds. Skips binary files. " + leavesOut},
		{Name: Glob, ReadOnly: true, InputSchema: spec.Schema(globSchema),
			Description: "List files by name, sorted, ignoring case. A pattern without / matches the file's own name in any folder (*.go); with / it matches the path below " +
				"path (src/**/*.ts). * and ? stay within a folder, ** spans folders, {a,b} and [a-z] work. " + leavesOut},
		{Name: Bash, Consequential: true, InputSchema: spec.Schema(bashSchema),
			Description: "Run a command with bash -c, without input. It starts in the working directory or in cwd below it. Each call is a new shell. " +
				"timeout is in milliseconds. What the command leaves in the background is killed when the call ends. Very long output loses its middle."},
	}
}

// leavesOut is said of both searches.
const leavesOut = "Leaves out links, what .gitignore names, and folders .git, .svn, .hg, node_modules, .next, dist and build, unless given as path; " +
	"the last line says what it left out."

// The limits in these schemas are what the rules may rely on: a rule's cost is computed from maxLength. Lengths are in
// runes. Texts of a file are bounded like a call's arguments as a whole, at 1 MiB.
const (
	fileReadSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "the file, absolute or relative to the working directory"},
    "offset": {"type": "integer", "minimum": 0, "maximum": 2147483647, "description": "first line to give, counted from 1"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 2147483647, "description": "how many lines to give at most"}
  },
  "required": ["path"],
  "additionalProperties": false
}`
	fileWriteSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "the file, absolute or relative to the working directory"},
    "content": {"type": "string", "maxLength": 1048576, "description": "all the file is to hold"}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`
	fileEditSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "the file, absolute or relative to the working directory"},
    "old_string": {"type": "string", "maxLength": 1048576, "description": "the text to replace"},
    "new_string": {"type": "string", "maxLength": 1048576, "description": "the text to put there"},
    "replace_all": {"type": "boolean", "default": false, "description": "replace every occurrence"}
  },
  "required": ["path", "old_string", "new_string"],
  "additionalProperties": false
}`
	grepSchema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "regular expression, RE2 syntax"},
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".", "description": "file or folder to search"},
    "glob": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "search only files that this pattern matches, as in glob"},
    "maxResults": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "how many lines to give at most"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`
	globSchema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "pattern of the names"},
    "path": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".", "description": "folder to list"},
    "maxFiles": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 500, "description": "how many paths to give at most"}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`
	bashSchema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "the command line"},
    "cwd": {"type": "string", "minLength": 1, "maxLength": 4096, "default": ".", "description": "folder to start in, absolute or relative to the working directory"},
    "timeout": {"type": "integer", "minimum": 1, "maximum": 600000, "default": 30000, "description": "milliseconds until the command is killed"}
  },
  "required": ["command"],
  "additionalProperties": false
}`
)

// arguments are the input of a call that its schema accepted. Absent names give zero values.
type arguments map[string]any

func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

func (a arguments) flag(name string) bool {
	b, _ := a[name].(bool)
	return b
}

func (a arguments) number(name string, absent int) int {
	switch n := a[name].(type) {
	case int64:
		return int(n)
	case int:
		return n
	case float64: // 5.0 passes as an integer
		return int(n)
	}
	return absent
}
