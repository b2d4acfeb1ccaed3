// Package external makes a local program an agent: a process that is started for each prompt, reads it from standard input
// or as its last argument, and answers on standard output.
//
// What the program exits with decides: 0 makes all of stdout the answer, anything else is an error with the end of what it
// wrote to stderr, redacted. An answer is never cut: one that is too long is an error. Nothing of the program is left when
// [Process.Prompt] returns; see package process.
//
// The package reads no environment, asks nobody what the program may do and cannot know what it does: the program works with
// the rights of the user. It counts no tokens, since there is nothing to count. Start at [New].
package external
