// Package runtime compiles a team into a plan and drives a plan to a receipt.
//
// [Compile] finds everything that can be known before the first model call. [Runner] then runs the single-threaded core
// (package core) on a local engine: effects on goroutines, their results recorded in the order in which they were
// taken. Every effect passes one door, the guard in guard.go; there is no other caller of a model or a tool.
//
// It reads no environment, no flag and no team file, and it knows no provider and no tool by name: those come in as
// [Model] and [ToolSource]. Start at [Compile], then [Runner.Run].
package runtime
