// Package process starts child processes, watches them and ends them with all they started.
//
// [Run] runs one command to its end and [Start] starts a peer that is talked to over its pipes. Either way the child has
// a session and a process group of its own, no terminal, the environment it is given and nothing of this program's own,
// and on Linux it dies with this program. When it ends, by itself or not, whatever is left of its group is killed. Only a
// process that moved to a group of its own survives; it holds no call, since pipes are read for half a second more at
// most.
//
// Output is read all the time and kept within bounds: a child never waits for its reader, and memory does not grow with
// what it writes. A child that does not read its input makes no error of its own: how it exits decides.
//
// The package reads no environment, knows no shell, retries nothing and redacts nothing. It works on Linux and macOS;
// elsewhere it refuses with [ErrUnsupported], since without process groups a child could not be ended with all it
// started.
package process
