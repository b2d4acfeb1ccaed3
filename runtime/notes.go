package runtime

import "github.com/open-multi-agent/oma/spec"

// note is something that an effect at work puts on record.
type note struct {
	event   spec.Event
	data    any
	lasting bool
	done    chan error // has room for the answer
}

// observe is called by an effect at work. It returns once the event is on record: a later attempt then knows of it, whatever
// becomes of this process.
func (e *engine) observe(event spec.Event, data any, lasting bool) error {
	n := note{event, data, lasting, make(chan error, 1)}
	e.notes <- n
	return <-n.done
}

// next waits for the end of an effect. Meanwhile it records what others put on record.
func (e *engine) next() completion {
	for {
		select {
		case c := <-e.done:
			return c
		case n := <-e.notes:
			e.rec.record(n.event, e.observed(n.data))
			if n.lasting {
				e.rec.sync()
			}
			if e.rec.flush(); e.rec.err != nil {
				e.cancel()
			}
			n.done <- e.rec.err
		}
	}
}
