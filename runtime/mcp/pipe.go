package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessageBytes bounds one message of a server. It holds a picture of 48 MB in base64.
const maxMessageBytes = 64 << 20

// pipe carries messages over two streams, one on each line. It is its own connection, since there is one alone.
type pipe struct {
	in      *bufio.Reader
	closer  io.Closer
	out     io.WriteCloser
	writing chan struct{} // has room for one: whoever put something in may write
	skipped func(line []byte)
	most    int // bytes of one message
	once    sync.Once
	asked   atomic.Int64 // requests of the server's that have no answer yet
}

// maxAsked bounds the requests of a server that wait for an answer. It gets none of what it asks for, but each is kept
// until the server reads that.
const maxAsked = 1000

// newPipe gives a transport. skipped is told of each line that is no message; it must not keep the line.
func newPipe(in io.ReadCloser, out io.WriteCloser, skipped func([]byte)) *pipe {
	return &pipe{in: bufio.NewReaderSize(in, 64<<10), closer: in, out: out, writing: make(chan struct{}, 1), skipped: skipped, most: maxMessageBytes}
}

// Connect makes a pipe a transport of the SDK.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID is empty: two streams are one session.
func (p *pipe) SessionID() string { return "" }

// Read gives the next message. Only one reader may call it. Close ends the wait.
func (p *pipe) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := readLine(p.in, p.most)
		if text := bytes.TrimSpace(line); err == nil && len(text) > 0 {
			switch msg, ok := message(text); {
			case !ok:
				p.skipped(text)
			case wanted(msg):
				if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() && p.asked.Add(1) > maxAsked {
					return nil, fmt.Errorf("the server asks more than %d things at once", maxAsked)
				}
				return msg, nil
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.ErrClosedPipe):
			return nil, io.EOF
		default:
			return nil, err
		}
	}
}

// readLine reads a line of any length up to the limit. A last line without an end is none: half a message is no message.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if err == nil && line == nil {
			return part, nil
		}
		if len(line)+len(part) > most {
			return nil, tooLong(most)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func tooLong(most int) error { return fmt.Errorf("a message is over %d MiB", most>>20) }

// message decodes a line. A line that is none says so, and costs nobody the connection.
func message(line []byte) (jsonrpc.Message, bool) {
	if line[0] != '{' || !json.Valid(line) {
		return nil, false
	}
	msg, err := jsonrpc.DecodeMessage(exact(line))
	return msg, err == nil
}

const toolsChanged = "notifications/tools/list_changed"

// wanted keeps the notifications that are of no use here from queueing up in memory: progress, logs, resources.
func wanted(msg jsonrpc.Message) bool {
	r, ok := msg.(*jsonrpc.Request)
	return !ok || r.IsCall() || r.Method == toolsChanged || !strings.HasPrefix(r.Method, "notifications/")
}

// Write sends a message. It returns when ctx ends although the server may not have read all of it; what was begun is
// then written on before anything else is, so that no message is cut.
func (p *pipe) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.out.Write(append(data, '\n'))
		<-p.writing
		if _, ok := msg.(*jsonrpc.Response); ok {
			p.asked.Add(-1)
		}
		if err != nil { // nobody reads any more, whatever the system calls it
			err = io.ErrClosedPipe
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes both streams. It may be called again.
func (p *pipe) Close() error {
	p.once.Do(func() {
		_ = p.out.Close()
		_ = p.closer.Close()
	})
	return nil
}
