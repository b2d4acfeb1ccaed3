// Package builtin holds the six tools every agent can be granted: file_read, file_write, file_edit, grep, glob and bash.
//
// The file tools work through [os.Root]: no path, link or race leads out of the agent's folder. Links that stay inside
// are followed, absolute ones too. A hard link is the file itself, wherever its other names are, and cannot be told
// from one; writing replaces the name and leaves the other names as they were. Files that judge the run, and everything
// named .git, are never written, whatever a rule allows: see [runtime.ErrProtected]. With containment off, paths anywhere work
// and the protection stays.
//
// grep and glob are one engine, with no program beside it: RE2, ** and braces in patterns, .gitignore files honoured,
// links not followed, paths in byte order before any cap, 30 seconds at most. The last line of a result counts what was
// left out, and a path that is named is searched whatever ignores it: nobody hides a file by how it is called.
//
// bash starts in the agent's folder and is not held there unless an [Executor] does that: it can read and write whatever
// the user can, the protected files included, and on Linux it could read the environment its parent was started with from
// /proc/PPID/environ unless the program forbids that for itself. It gets PATH, HOME and a few more variables, never a
// key. What it leaves in the background is killed when the call ends; only a process that moved to a process group of
// its own survives. When the program itself is killed with SIGKILL, Linux kills the shell with it, but not what the
// shell has started, in the foreground or the background; macOS kills neither. It needs Linux or macOS.
//
// The package reads no environment, remembers no approval and judges no call. It refuses rather than guesses: a
// folder that was swapped, a file that is no file, output without bound. Start at [Open]; [TreeDigest] says what a
// folder holds.
package builtin
