package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// door is the way of every request to a server: to one origin, with the headers that were declared for it.
type door struct {
	origin  string
	headers map[string]string
	base    http.RoundTripper
	life    context.Context // of every request, streams included
	cut     context.CancelFunc
}

// maxRedirects is how often a server may send a request on to another path.
const maxRedirects = 5

func newDoor(o Options) (*door, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("expected a url of http or https, with a host and without a user")
	}
	d := &door{origin: origin(u), headers: o.Headers, base: o.HTTP}
	if d.base == nil { // the default one takes its proxy from the environment
		d.base = &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			IdleConnTimeout:     90 * time.Second,
		}
	}
	d.life, d.cut = context.WithCancel(context.Background())
	if t, ok := d.base.(*http.Transport); ok && o.HTTP == nil {
		cut := d.cut
		d.cut = func() { cut(); t.CloseIdleConnections() }
	}
	return d, nil
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (d *door) transport(address string) sdk.Transport {
	return &sdk.StreamableClientTransport{
		Endpoint:     address,
		MaxEventSize: -1, // bounded here, before exact makes it longer
		HTTPClient: &http.Client{Transport: d, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return nil
		}},
	}
}

// RoundTrip makes one request. It is asked again for each redirect.
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	if to := origin(r.URL); to != d.origin {
		return nil, fmt.Errorf("a redirect to %s is not followed: it is another origin than %s", to, d.origin)
	}
	ctx, cancel := context.WithCancel(r.Context())
	detach := context.AfterFunc(d.life, cancel)
	done := func() {
		detach()
		cancel()
	}
	r = r.Clone(ctx)
	for name, value := range d.headers {
		if r.Header.Get(name) == "" { // the protocol's own are not for others to set
			r.Header.Set(name, value)
		}
	}
	resp, err := d.base.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = &body{Reader: readerOf(resp), inner: resp.Body, done: done}
	return resp, nil
}

// readerOf bounds what is read of an answer, and keeps the exact text of results in it.
func readerOf(resp *http.Response) io.Reader {
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "text/event-stream":
		return &events{in: bufio.NewReaderSize(resp.Body, 64<<10)}
	case "application/json":
		return &document{in: resp.Body}
	}
	return io.LimitReader(resp.Body, maxPage)
}

// maxPage bounds what is read of an answer that is no message, such as a page about an error.
const maxPage = 1 << 20

type body struct {
	io.Reader
	inner io.Closer
	done  func()
}

func (b *body) Close() error {
	err := b.inner.Close()
	b.done()
	return err
}

// document is an answer of one message. It is read at the first Read.
type document struct {
	in  io.Reader // nil: has been read
	out bytes.Reader
}

func (d *document) Read(p []byte) (int, error) {
	if d.in != nil {
		text, err := io.ReadAll(io.LimitReader(d.in, maxMessageBytes+1))
		d.in = nil
		if err == nil && len(text) > maxMessageBytes {
			err = tooLong(maxMessageBytes)
		}
		if err != nil {
			return 0, err
		}
		d.out.Reset(exact(text))
	}
	return d.out.Read(p)
}

// events is a stream of messages. The lines of data of one event are one message.
type events struct {
	in   *bufio.Reader
	data []byte // of the event that is being read
	out  bytes.Reader
	err  error
}

func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		var line []byte
		line, e.err = readLine(e.in, maxMessageBytes)
		e.out.Reset(e.take(line))
	}
	return e.out.Read(p)
}

// take gives what is to be read in place of a line: nothing while an event's data is not complete.
func (e *events) take(line []byte) []byte {
	text := bytes.TrimRight(line, "\r\n")
	if data, ok := bytes.CutPrefix(text, []byte("data:")); ok {
		if len(e.data) > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, bytes.TrimPrefix(data, []byte(" "))...)
		if len(e.data) > maxMessageBytes {
			e.err = tooLong(maxMessageBytes)
		}
		return nil
	}
	if len(e.data) == 0 {
		return line
	}
	var flat bytes.Buffer
	if json.Compact(&flat, e.data) != nil {
		flat.Reset()
		flat.Write(bytes.ReplaceAll(e.data, []byte("\n"), []byte(" "))) // no message either way: the SDK says so
	}
	out := append([]byte("data: "), exact(flat.Bytes())...)
	e.data = nil
	return append(append(out, '\n'), line...)
}
