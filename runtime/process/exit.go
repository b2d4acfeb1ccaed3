package process

import "fmt"

// Exit is how a process ended. The zero value is success.
type Exit struct {
	Code   int // 128 + Signal where a signal killed it, as shells have it
	Signal int // 0: none
	signal string
	Err    error // its end could not be seen; the rest says nothing then
}

// OK says that it exited with code 0.
func (e Exit) OK() bool { return e.Code == 0 && e.Err == nil }

// String says it in words: exited with code 3.
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return "ended in a way that could not be seen: " + e.Err.Error()
	case e.Signal != 0:
		return fmt.Sprintf("died of signal %d, %s", e.Signal, e.signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// Reason says who ended a process.
type Reason int

const (
	Exited    Reason = iota // it ended by itself; its Exit says how
	TimedOut                // its own time limit
	Deadline                // the deadline of the context
	Cancelled               // the context
	Closed                  // the Runner was closed
	Flooded                 // it wrote more on stdout than it may
)

func (r Reason) String() string {
	return [...]string{"exited", "timed out", "deadline", "cancelled", "closed", "flooded"}[r]
}
