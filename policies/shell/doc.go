// Package shell says what a shell command does, by reading it: how risky it is and why, which commands it starts, what
// it writes, whether it talks to the network.
//
// It reads the syntax tree that bash would make of the text, and follows what bash would run: substitutions, the words of
// wrappers such as timeout, the text given to bash -c. It runs nothing, looks at no file and does not know what variables
// hold. What it cannot read, or what is only known when it runs, is never safe. It is no sandbox: a command that is safe
// here is as safe as the program of that name, and what the programs of a project do is not read.
//
// A command is judged by what it does in itself; the worst of everything in a text counts. Safe is a short list: programs
// that read, without the options that make them write or run something. High is what destroys, escalates, publishes, or
// runs what nobody has read. Everything else is for review.
//
// Start at [Classify]. The tables to audit are readers.go (what is safe, high and known), wrappers.go, git.go, path.go
// and assign.go.
package shell
