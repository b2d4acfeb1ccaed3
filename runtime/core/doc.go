// Package core is the part of a run that decides: the scheduler, the agent loop, the ledger's use. One thread of it
// runs at a time and which one runs next follows from the order of effect results alone, so the recorded results are
// enough to run it again, here or on another engine.
//
// It has no clock, no input or output, no goroutine, no lock and no context, and no map whose order decides anything;
// a test forbids the imports. Whatever it wants from the world it asks for through [Flow], and the one who answers is
// the door in runtime/guard.go. Start at [Run].
package core
