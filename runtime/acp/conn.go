package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// handler is what a connection does with what the agent sends.
type handler struct {
	// notify is called on the reader's goroutine, in order.
	notify func(method string, params json.RawMessage)
	// serve answers a request, on a goroutine of its own. Its context ends with the connection.
	serve func(ctx context.Context, method string, params json.RawMessage) (any, *RPCError)
	// remark gets what a person may want to know of the connection.
	remark func(format string, args ...any)
}

const (
	maxServing  = 32       // the agent's open requests; more are refused
	maxNoise    = 10_000   // lines that are no message, before the agent is taken for something else
	loggedNoise = 20       // of them that are shown
	maxUnsent   = 16 << 20 // bytes of answers that an agent may leave unread before it is not read either
	deafTime    = time.Second
)

var (
	errEnded = errors.New("the agent closed its output")
	errDeaf  = errors.New("the agent closed its input")
	errLocal = errors.New("the connection was closed")
	errNoise = errors.New("more than 10000 lines that are no message")
)

// answer is what became of a request of ours.
type answer struct {
	result json.RawMessage
	err    error // a *RPCError, or why the connection ended
}

type pending struct {
	settle func() // called on the reader's goroutine before anything after the answer is read. nil: nothing
	done   chan answer
}

// conn is one JSON-RPC connection. Reading never waits for writing, for a request that is being answered or for a person;
// it waits only for notify.
type conn struct {
	handler
	in  io.Reader
	out io.Writer

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	room    sync.Cond // of mu: unsent has changed, or the connection has ended
	err     error     // why the connection ended. nil: it has not
	ended   chan struct{}
	lastID  int64
	waiting map[int64]pending
	serving map[string]bool // ids of the agent's open requests, as written
	unsent  [][]byte
	bytes   int // in unsent
	noise   int // lines so far; the reader's alone
}

// newConn starts the connection. Whoever makes it closes in and out after end, and then calls wait.
func newConn(in io.Reader, out io.Writer, h handler) *conn {
	c := &conn{handler: h, in: in, out: out, ended: make(chan struct{}), waiting: map[int64]pending{}, serving: map[string]bool{}}
	c.room.L = &c.mu
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.work.Go(c.read)
	c.work.Go(c.write)
	return c
}

// end ends the connection once; everything that is open fails with why.
func (c *conn) end(why error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = why
	open := c.waiting
	c.waiting, c.unsent, c.bytes = nil, nil, 0
	close(c.ended)
	c.room.Broadcast()
	c.mu.Unlock()
	c.cancel()
	for _, p := range open {
		if p.settle != nil {
			p.settle()
		}
		p.done <- answer{err: why}
	}
}

// wait returns once nothing of the connection runs any more.
func (c *conn) wait() { c.work.Wait() }

// request sends a request; the answer comes on the channel, once.
func (c *conn) request(method string, params any, settle func()) <-chan answer {
	p := pending{settle, make(chan answer, 1)}
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		p.done <- answer{err: c.err}
		return p.done
	}
	c.lastID++
	id := c.lastID
	c.waiting[id] = p
	c.mu.Unlock()
	if err := c.send(outRequest{rpcVersion, &id, method, params}); err != nil {
		c.settle(id, answer{err: err})
	}
	return p.done
}

// call sends a request and waits for its answer.
func (c *conn) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	done := c.request(method, params, nil)
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// notification sends what needs no answer.
func (c *conn) notification(method string, params any) {
	_ = c.send(outRequest{rpcVersion, nil, method, params}) // it fails only where the connection's end says so already
}

// send queues a message. It does not wait: what is queued here is bounded by how many requests are open.
func (c *conn) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.unsent = append(c.unsent, append(b, '\n'))
	c.bytes += len(b) + 1
	c.room.Broadcast()
	return nil
}

// write sends what is queued. An agent that has closed its input is heard to the end, for a while.
func (c *conn) write() {
	for {
		c.mu.Lock()
		for len(c.unsent) == 0 && c.err == nil {
			c.room.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		next := c.unsent[0]
		c.unsent = c.unsent[1:]
		c.mu.Unlock()
		_, err := c.out.Write(next)
		c.mu.Lock()
		c.bytes = max(c.bytes-len(next), 0)
		c.room.Broadcast()
		c.mu.Unlock()
		if err == nil {
			continue
		}
		patience := time.NewTimer(deafTime)
		defer patience.Stop()
		select {
		case <-patience.C:
			c.end(errDeaf)
		case <-c.ended:
		}
		return
	}
}

func (c *conn) read() {
	in := newLines(c.in)
	for {
		line, err := in.next()
		if err == nil {
			err = c.handle(line)
		}
		switch {
		case err == nil:
		case errors.Is(err, errLongLine), errors.Is(err, errNoise):
			c.end(err)
			return
		default:
			c.end(errEnded)
			return
		}
	}
}

// handle does what one line asks. An error ends the connection.
func (c *conn) handle(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	m, kind := parse(line)
	switch kind {
	case noise:
		return c.skip(line)
	case batch:
		c.refuse(nullID, codeInvalidRequest, "several messages in one list are not understood")
	case invalid:
		if len(m.ID) > maxID {
			m.ID = nullID
		}
		c.refuse(m.ID, codeInvalidRequest, "not a request")
	case request:
		c.admit(m)
	case notification:
		c.notify(m.method, m.Params)
	case response:
		c.answered(m)
	}
	return nil
}

// skip leaves out a line that is no message.
func (c *conn) skip(line []byte) error {
	c.noise++
	switch {
	case c.noise > maxNoise:
		return errNoise
	case c.noise <= loggedNoise:
		c.remark("skipped a line that is no message: %q", line[:min(len(line), maxRemark)])
	}
	return nil
}

// refuse answers from the reader. It is the one place where reading waits for writing: an agent that asks without end and
// reads no answer is not to fill the memory.
func (c *conn) refuse(id json.RawMessage, code int64, text string) {
	c.mu.Lock()
	for c.bytes > maxUnsent && c.err == nil {
		c.room.Wait()
	}
	c.mu.Unlock()
	_ = c.send(outError{rpcVersion, id, &RPCError{Code: code, Message: text}})
}

// admit starts answering a request.
func (c *conn) admit(m message) {
	id := string(m.ID)
	c.mu.Lock()
	known, full := c.serving[id], len(c.serving) >= maxServing
	if !known && !full {
		c.serving[id] = true
	}
	c.mu.Unlock()
	switch {
	case known:
		c.refuse(m.ID, codeInvalidRequest, "a request with this id is still open")
		return
	case full:
		c.refuse(m.ID, codeInternal, fmt.Sprintf("more than %d requests at once", maxServing))
		return
	}
	c.work.Go(func() {
		result, rpc := c.serve(c.ctx, m.method, m.Params)
		c.mu.Lock()
		delete(c.serving, id)
		c.mu.Unlock()
		if rpc != nil {
			_ = c.send(outError{rpcVersion, m.ID, rpc})
			return
		}
		if err := c.send(outResult{rpcVersion, m.ID, result}); err != nil && c.ctx.Err() == nil {
			c.remark("no answer to %s was sent: %v", m.method, err)
		}
	})
}

// answered hands an answer to whoever waits for it.
func (c *conn) answered(m message) {
	var id int64
	if json.Unmarshal(m.ID, &id) != nil {
		c.remark("an answer came to a request that was not made, with id %s", m.ID)
		return
	}
	a := answer{result: m.Result}
	if m.Error != nil && string(m.Error) != "null" {
		a = answer{err: decodeRPCError(m.Error)}
	}
	if !c.settle(id, a) {
		c.remark("an answer came to a request that was not made, with id %d", id)
	}
}

// settle ends a request of ours. False: it is not open.
func (c *conn) settle(id int64, a answer) bool {
	c.mu.Lock()
	p, ok := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if !ok {
		return false
	}
	if p.settle != nil {
		p.settle()
	}
	p.done <- a
	return true
}
