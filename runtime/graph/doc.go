// Package graph draws the task graph of a plan: as text for a terminal, for Mermaid, for Graphviz, and as SVG.
//
// Names and titles may have been written by anybody, so each is one line, without control characters, and escaped for
// where it goes: it cannot act on a terminal, end a quoted word, add an edge or become an element. An SVG has no script
// and asks for nothing from outside.
//
// It is pure: a plan in, bytes out, the same for the same plan, in time that grows with tasks and dependencies alone. It
// refuses a plan whose tasks are no graph: an id twice, a dependency on nothing, a cycle. Start at [New].
package graph
