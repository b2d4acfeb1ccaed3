// Package custom makes the tools that a team declares of its own: commands and HTTP requests.
//
// A command gets the whole judged input as JSON on standard input, and values of it as parts of single arguments; no shell
// is between. It has a minimal environment with the credentials it declares, a time limit and bounded output, and nothing
// of it is left when the call ends: see package process. A request goes to one literal origin, directly: no proxy, no
// redirect, no cookie, TLS verified, one answer of text of at most 8 MiB.
//
// What either gives is text, one JSON value, or one object {data, modelOutput}; what is none of the one that was declared
// is an error result, as is a command's exit code and a status of 400 or more. All text is valid UTF-8 and redacted.
//
// The package reads no environment and no file, and it retries nothing. Start at [Open].
package custom
