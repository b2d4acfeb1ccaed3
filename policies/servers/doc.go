// Package servers says what MCP servers offer to a team: what is wrong with a declaration of one ([Check]), the tools
// that rules judge and agents are granted ([Offer]), the lock that pins them ([NewLock], [Verify]) and how far a server
// has moved away from it ([Compare], [Diff]).
//
// A server is not believed. What it hints of its tools is shown and decides nothing; a schema that opens a file or an
// address cannot be used; a name becomes one that every model's server takes.
//
// The package is pure: it starts nothing, asks nobody and knows no credential's value.
package servers
