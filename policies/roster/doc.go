// Package roster says who can do a task and who does it, by what tasks require and agents declare. It reads texts for words that
// they share, and for nothing else: what an agent can do is never read out of prose. It decides before anything runs, from
// the plan alone, so the same team gives the same assignments. Start at [Assign].
package roster
