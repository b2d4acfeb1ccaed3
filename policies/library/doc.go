// Package library carries the packs: policies (kind: Policy) that a team turns on by name, in gates.packs.
//
// It holds documents and judges nothing. A pack is a YAML file beside this one, read like any other policy, and nothing
// is on unless a team names it. Start at [Get].
package library
