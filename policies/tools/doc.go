// Package tools says what a tool of a team's own declares: what a model and the rules are told of it ([Info]), what is
// wrong with it ([Check]), and what a call makes of its command ([Command]) or its address ([Address]).
//
// A value of a call is never more than a part of one argument, one path segment or one query value. It becomes no
// option's name, no shell's script, no origin and no other path; where that cannot be promised, the call or the
// declaration is refused. What [Check] passes, a call can use.
//
// The package is pure: it starts nothing, asks nobody and knows no credential's value.
package tools
