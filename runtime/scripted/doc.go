// Package scripted plays a cassette in place of a model, and records one. It needs no key, no network and no clock but
// for a turn's own delay. Start at [New] to play and at [NewRecorder] to record.
//
// It never guesses: a request that no turn answers, one that differs from the recorded one and one that an expectation
// refuses are errors that wrap runtime.ErrCassette and name the turn's place. [Model.Unused] tells which turns were
// never played.
//
// # What makes a request the recorded one
//
// [RequestDigest] covers what the team and the model decide: agent, task, model, system prompt, the task's first
// message, the tools with their schemas, the roles of all messages and each call's id, tool and arguments. It leaves
// out what tools answered and whether they failed, because times, paths and files differ from machine to machine, and
// the text of later user messages, which may quote it. Of an attachment it covers the type, not the bytes. So a recording plays elsewhere, and a changed prompt, grant or
// schema is noticed. With match: exact, all texts, the digests of attachments, the tools' descriptions and the temperature count too. The output
// limit never does: it follows from what is left of a budget.
//
// Text goes through the patterns of spec/redact before it is hashed. A recording holds no secrets, so a task that is
// handed the text of an earlier one reads it without them when it is played.
//
// # What a recording does not keep
//
// Secrets in texts and arguments become [redacted], and so a tool that is called with one does not do the same again.
// Times are not kept: a recording plays at once. A call that ended because its context did is not an answer and is left
// out. Of a failure its status, message and Retry-After are kept; whether it may be tried again follows from the status.
package scripted
