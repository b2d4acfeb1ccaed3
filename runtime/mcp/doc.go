// Package mcp makes tools of what MCP servers offer, over standard streams or streamable HTTP.
//
// A server is not believed. Its tools are compared with what was judged before each call that follows a change it told
// of; what it hints of them is shown and decides nothing; its schemas open no file and no address; lines that are no
// messages are skipped, and said so; a server that is silent, dead or without bound is an error that names it. It is
// offered nothing: no sampling, no elicitation, no roots. Over HTTP, requests and headers go to the origin of the
// server's address and to no other, whatever a redirect says. A server that was started is ended with all that its
// process group holds; only a process that moved to a group of its own survives.
//
// A result's text is, in this order: toolResult as older servers send it; else the content blocks, one below the other,
// and then structuredContent, unless a block holds the same value already. So nothing is lost and nothing is said
// twice. Pictures and other bytes are named with their length.
//
// The package reads no environment, grants nothing and judges no call. It never makes a call again by itself. Start at
// [Open] and [Client.List] for what a server has; package policies/servers makes tools and locks of that.
package mcp
