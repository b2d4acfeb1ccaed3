// Package routing says whether one agent is enough for a goal, or a team is needed, from the goal's text alone.
//
// A goal is simple when it is short and shows no sign of having parts: a sequence, a list, work side by side. What it is
// about is not understood and not guessed at, so the answer is cheap, the same everywhere, and easy to argue with: a
// [Decision] names the pattern and the words that decided. It declares no governance and grants nothing.
//
// Any text is judged in time that grows with its length alone. Start at [Classify]; the table to audit is patterns.go.
package routing
