package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// readEvents collects a stream up to its end mark or end. hangUp ends the exchange.
func readEvents(ctx context.Context, hangUp func(), resp *http.Response, c *collector) error {
	seen := &firstBytes{ReadCloser: resp.Body}
	resp.Body = seen
	events := ssestream.NewDecoder(resp)
	empty := true
	for events.Next() {
		// What is already buffered would otherwise be read on after a cancellation.
		if err := ctx.Err(); err != nil {
			return err
		}
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			c.ended = true
			drain(resp.Body, hangUp)
			return nil
		}
		if len(data) == 0 {
			continue
		}
		empty = false
		if events.Event().Type == "error" {
			return reportedFailure(data)
		}
		if err := decode(data, c); err != nil {
			return err
		}
	}
	err := events.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return failf(codeTooLarge, "answer has an event that is too long")
	case err != nil && c.finish == "":
		return brokenOff(err)
	case err == nil && empty:
		return noAnswer(resp, seen.head)
	}
	return nil // a finish reason was seen, so that only the end mark can be missing; response judges the rest
}

// readWhole takes an answer in one piece.
func readWhole(resp *http.Response, c *collector) error {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return brokenOff(err)
	}
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return noAnswer(resp, trimmed)
	}
	c.ended = true
	return decode(body, c)
}

func decode(data []byte, c *collector) error {
	v := c.fresh()
	err := json.Unmarshal(data, v)
	var wrong *json.UnmarshalTypeError
	var broken *json.SyntaxError
	switch {
	case err == nil:
		return c.add(v)
	case errors.As(err, &wrong):
		return failf(codeBadResponse, "answer cannot be read: %s is a JSON %s", wrong.Field, wrong.Value)
	case errors.As(err, &broken) && broken.Offset >= int64(len(data)):
		return incompletef("answer ends in the middle of a JSON text")
	}
	return failf(codeBadResponse, "answer is not valid JSON: %v", err)
}

// brokenOff explains a body that could not be read to its end.
func brokenOff(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return incompletef("connection broke off in the middle of the answer: %s", plain(err))
}

// noAnswer explains a good status with something else than an answer behind it.
func noAnswer(resp *http.Response, head []byte) error {
	head = bytes.TrimSpace(head)
	if len(head) == 0 {
		return incompletef("answer is empty")
	}
	kind := mediaType(resp)
	if kind == "" {
		kind = "of no stated type"
	}
	return failf(codeBadResponse, "answer is %s, want a chat completion; it begins with %q", kind, cut(string(head), 80))
}

// firstBytes remembers how a body began, for the message about one that is no answer.
type firstBytes struct {
	io.ReadCloser
	head []byte
}

func (f *firstBytes) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if room := 256 - len(f.head); room > 0 {
		f.head = append(f.head, p[:min(n, room)]...)
	}
	return n, err
}

// drainTime is how long a connection is worth waiting for. The end of a body comes with or right after the end mark.
const drainTime = 100 * time.Millisecond

// drain reads on to the end of the body, so that the connection can carry the next turn. A server that holds the
// connection open after the end mark costs drainTime and the connection.
func drain(body io.Reader, hangUp func()) {
	defer time.AfterFunc(drainTime, hangUp).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 4<<10))
}

func cut(s string, runes int) string {
	n := 0
	for i := range s {
		if n == runes {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
