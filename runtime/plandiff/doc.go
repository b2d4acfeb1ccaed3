// Package plandiff says what differs between two plans in the words of a reviewer: what was widened, what was narrowed,
// and what else has changed.
//
// Widened is about what may happen: who may do what, with whose keys, at what cost, without asking whom, and what is
// checked afterwards. Texts and models decide how well work is done and not what may be done, so they are shown and not
// judged. A difference is narrowed only where that can be shown; whatever cannot be shown not to widen is widened. So is
// every member of a plan that this package has never heard of.
//
// It is pure: two plans in, differences out, in an order that follows from the plans alone. It refuses to read files, to
// compile and to decide an exit code. Start at [Compare], then at plan in meaning.go, which says what each part of a plan
// means.
package plandiff
