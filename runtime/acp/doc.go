// Package acp drives one external coding agent over the Agent Client Protocol: a program that is started on the first
// prompt, spoken to over its standard input and output, and stopped with everything it started.
//
// The connection is JSON-RPC, one message a line. It reads lines of up to 64 MiB and any number of updates without losing
// or reordering one, skips lines that are no message, and answers what the agent asks meanwhile. What agents really send is
// read tolerantly, null where the protocol wants a number included; what decides something is read strictly.
//
// An agent's word is no proof. A turn is completed only if the agent says end_turn and nothing it said beside that tells
// of a failure; usage that nobody reported is nil, never zero; a request for permission is refused wherever it is not
// understood whole. The package offers the agent nothing that [Options.Capabilities] does not name, and touches no file
// and no shell itself: what the agent asks of its client goes through [Options.Door], which judges it.
//
// It signs nobody in, opens no server of tools for the agent and restores no earlier session. What the agent does on its
// own, with its own hands, it neither sees nor holds. It reads no environment. It needs Linux or macOS. Start at [New],
// then [Agent.Prompt].
package acp
