package shell

import (
	"slices"
	"strings"
)

// reader is a program that only reads, as far as its options go.
type reader struct {
	name string
	options
	bulk     bool // its risky options only make it read more
	operands int  // at most, where more make it write; 0: any number, -1: none
	level    string
	code     string
	reason   string // of level, or of too many operands
}

// readers are the programs known to read, by name. A program is here only if it starts no other program and writes
// nothing without one of the options in its row.
var readers = [...]reader{
	{name: ":"},
	{name: "basename"},
	{name: "break"},
	{name: "cat"},
	{name: "cksum"},
	{name: "cmp"},
	{name: "column"},
	{name: "comm"},
	{name: "continue"},
	{name: "cut"},
	{name: "df"},
	{name: "diff", options: options{values: "CFIUWxSXDL", risky: "l", riskyLong: " paginate "}},
	{name: "dirname"},
	{name: "du", level: Review, code: "recursive", reason: "reads whole trees"},
	{name: "echo"},
	{name: "exit"},
	{name: "false"},
	{name: "file", options: options{values: "mfFPe", risky: "CzZ", riskyLong: " compile uncompress uncompress-noreport "}},
	{name: "fold"},
	{name: "free"},
	{name: "head"},
	{name: "hostname", options: options{risky: "Fb", riskyLong: " file boot "}, operands: -1, reason: "names the machine"},
	{name: "id"},
	{name: "jq"},
	{name: "ls", options: options{values: "Iw", risky: "R", riskyLong: " recursive "}, bulk: true},
	{name: "md5sum"},
	{name: "nl"},
	{name: "paste"},
	{name: "printenv"},
	{name: "ps"},
	{name: "pwd"},
	{name: "readlink"},
	{name: "realpath"},
	{name: "return"},
	{name: "rev"},
	{name: "seq"},
	{name: "sha1sum"},
	{name: "sha224sum"},
	{name: "sha256sum"},
	{name: "sha384sum"},
	{name: "sha512sum"},
	{name: "sleep"},
	{name: "sort", options: options{values: "kStTo", longValues: " key buffer-size field-separator files0-from batch-size parallel random-source sort ",
		risky: "oT", riskyLong: " output compress-program temporary-directory "}},
	{name: "stat"},
	{name: "tac"},
	{name: "tail"},
	{name: "tr"},
	{name: "tree", options: options{values: "LPIoHT", risky: "oR", riskyLong: " output "}, level: Review, code: "recursive", reason: "reads whole trees"},
	{name: "true"},
	{name: "type"},
	{name: "uname"},
	{name: "uniq", options: options{values: "fsw", longValues: " skip-fields skip-chars check-chars "}, operands: 1, reason: "writes a file"},
	{name: "wait", options: options{risky: "p", first: true}},
	{name: "wc"},
	{name: "which"},
	{name: "whoami"},
}

func readerNamed(name string) (*reader, bool) {
	i, ok := slices.BinarySearchFunc(readers[:], name, func(r reader, s string) int { return strings.Compare(r.name, s) })
	if !ok {
		return nil, false
	}
	return &readers[i], true
}

// kind is a class of commands.
type kind struct{ code, reason string }

// destroys gives the commands that are high in every form, in whatever directory they are.
func destroys(name string) (kind, bool) {
	switch name {
	case "rm", "unlink", "srm":
		return kind{"destructive", "removes files"}, true
	case "dd", "shred", "wipe":
		return kind{"destructive", "overwrites files or disks"}, true
	case "mke2fs", "mkswap", "fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "wipefs", "blkdiscard", "newfs", "mkfs":
		return kind{"destructive", "overwrites disks"}, true
	case "sudo", "doas", "su", "pkexec", "run0", "runuser", "sudoedit":
		return kind{"privilege", "acts as another user"}, true
	case "reboot", "shutdown", "halt", "poweroff":
		return kind{"destructive", "stops the machine"}, true
	case "eval":
		return kind{"runs-text", "runs text as a command"}, true
	}
	if strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "newfs_") {
		return kind{"destructive", "overwrites disks"}, true
	}
	return kind{}, false
}

// changes says what commands do that are never safe and often met.
func changes(name string) (kind, bool) {
	switch name {
	case "cd", "pushd", "popd":
		return kind{"changes-directory", "changes the directory that later commands act in"}, true
	case "mkdir", "rmdir", "touch", "cp", "mv", "ln", "install", "truncate", "patch", "tar", "unzip", "zip", "gzip", "gunzip", "split", "mktemp", "mkfifo":
		return kind{"changes-files", "changes files"}, true
	case "kill", "killall", "pkill", "skill":
		return kind{"processes", "stops processes"}, true
	case "make", "cmake", "ninja", "go", "cargo", "npm", "yarn", "pnpm", "npx", "bun", "mvn", "gradle", "pytest", "tox", "docker", "podman":
		return kind{"runs-project", "runs what the project says"}, true
	case "read", "mapfile", "readarray", "getopts", "unset", "shift", "declare", "typeset", "shopt", "enable", "hash", "bind", "complete", "umask", "ulimit":
		return kind{"declares", "changes the state of the shell"}, true
	case "less", "more", "man", "vi", "vim", "nvim", "nano", "emacs", "ed", "ex":
		return kind{"interactive", "can run commands and write files"}, true
	}
	return kind{}, false
}
