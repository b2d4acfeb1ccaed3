// Package report renders a gate's verdict for people and for CI systems: as text, JSON, JUnit XML, GitHub workflow
// commands and a GitHub step summary.
//
// Everything it shows may have been written by a model, a tool or a server, so every word is escaped for where it goes:
// it cannot move a cursor, forge a line, leave an element or a table cell, or give an order to the CI system that reads
// the log. See [Escape] and [EscapeLog].
//
// It decides nothing: what passes is the verdict's word, and a rendering never says pass where the verdict does not.
// It reads no clock, no file and no environment, so one verdict always gives the same bytes. Start at [Formats].
package report
