package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxLine bounds one message. The figure is twice what the protocol's own library for agents takes.
const maxLine = 64 << 20

var errLongLine = errors.New("a line of more than 64 MiB")

// lines reads a stream line by line.
type lines struct {
	r   *bufio.Reader
	buf []byte // of a line that does not fit into r
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next gives the next line without its end. It is valid until next is called again. The last line may lack its end.
func (l *lines) next() ([]byte, error) {
	const kept = 1 << 20 // what a long line needed is given back
	if cap(l.buf) > kept {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf)+len(part) > maxLine {
			return nil, errLongLine
		}
		if err == nil && len(l.buf) == 0 {
			return bytes.TrimSpace(part), nil
		}
		l.buf = append(l.buf, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line := bytes.TrimSpace(l.buf)
		if len(line) > 0 {
			err = nil // it comes again with the next line
		}
		return line, err
	}
}

// message is one JSON-RPC message of any kind. Members that are absent are nil. The version is not looked at: no
// agent differs in it, and some leave it out.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method json.RawMessage `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	method string
}

// What a line holds.
type lineKind int

const (
	noise        lineKind = iota // no message: a banner, a line of a log
	batch                        // several messages in one list
	invalid                      // an id, and nothing that can be done with it
	request                      // to be answered
	notification                 // not to be answered
	response                     // the answer to a request of ours
)

// maxID bounds an id that is sent back.
const maxID = 4096

func parse(line []byte) (m message, kind lineKind) {
	line = bytes.TrimPrefix(line, []byte("\ufeff"))
	if len(line) > 0 && line[0] == '[' && json.Valid(line) {
		return m, batch
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &m) != nil {
		return m, noise
	}
	switch {
	case m.Method != nil && (json.Unmarshal(m.Method, &m.method) != nil || m.method == ""), len(m.ID) > maxID:
		if m.ID == nil {
			return m, noise
		}
		return m, invalid
	case m.method != "" && m.ID != nil:
		return m, request
	case m.method != "":
		return m, notification
	case m.ID != nil && (m.Result != nil || m.Error != nil):
		return m, response
	case m.ID != nil:
		return m, invalid
	}
	return m, noise
}

// The messages that are sent.
type (
	outRequest struct {
		Version string `json:"jsonrpc"`
		ID      *int64 `json:"id,omitempty"` // nil: a notification
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	outResult struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}
	outError struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *RPCError       `json:"error"`
	}
)

const rpcVersion = "2.0"

// nullID answers what has no id that can be sent back.
var nullID = json.RawMessage("null")
