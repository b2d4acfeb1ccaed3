// Package attest signs receipts and checks such signatures: a DSSE envelope around an in-toto Statement v1.
//
// A signature is over bytes as they are stored, the receipt's and the statement's; nothing is decoded and encoded again
// before it is hashed. Whoever holds the key says with it that this receipt, byte for byte, was in front of them, and
// which file or folder it is about. The package judges no run: a receipt of a run that failed can be signed, and the gate
// still fails it.
//
// It refuses every key but Ed25519 and ECDSA on P-256, every statement but its own, and all that follows from no key it
// was given. It reads no file, no environment and no clock, and draws no random number. Start at [Sign] and [Verify].
package attest
