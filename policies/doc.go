// Package policies judges and does nothing else: what an agent is granted, whether the budget has room, whether a tool
// call may run, whether results may be released, and what a run's governance comes to.
//
// It calls no model and no tool, reads no file, clock or environment, and keeps nothing between calls but the ledger.
// It is the sole importer of CEL. What it cannot judge, it refuses: a rule that fails denies the call, and a
// requirement that fails has not held.
//
// Gates start at [Compile] and [Set.Decide]. A rule is checked once for each tool it can meet, with the tool's name
// put in and input typed from the tool's schema, so a misspelt field is an error before anything runs. Release
// requirements start at [CompileRelease]. The others are [Grant], [Ledger], [Topology] and [Conclude].
package policies
