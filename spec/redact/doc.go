// Package redact takes secrets out of text that people, logs and receipts will see. It knows two kinds: the values the
// program itself resolved, which are found exactly and in their encoded forms, and text that looks like a secret, such
// as a private key, a bearer token or the value of a member called password.
//
// Names are judged by whole words, so token_budget, max_tokens and secretary stay readable. Hashes and UUIDs are left
// alone. What looks like a secret is a guess in both directions; only resolved values are a promise.
//
// It reads nothing, remembers nothing it has seen and imports the standard library only. There is no regular
// expression in it: one pass over the text, linear in its length, that stops only at the few bytes a secret can
// follow. Apply it to decoded values, leaf by leaf, and before text is cut: half a secret is not recognised. Start at
// [New].
package redact
