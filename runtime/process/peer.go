package process

import (
	"cmp"
	"errors"
	"io"
	"os"
	"time"
)

// Peer is a long-lived child that is talked to over its pipes. Close it, whatever happened. Its methods are safe for
// concurrent use.
type Peer struct {
	// Stdin is for one writer at a time. Closing it tells the peer that nothing more comes.
	Stdin io.WriteCloser
	// Stdout is for one reader, which should read all the time: what is not read half a second after the peer's end is
	// lost. It then ends with io.EOF, whoever still holds the other end.
	Stdout io.ReadCloser

	child  *child
	stderr *stream
	done   chan struct{}
}

// keepPeerStderr is how much is kept of the start and of the end of what a peer complains about.
const keepPeerStderr = 16 << 10

// Start starts a peer. keep is how many bytes of the start and of the end of its stderr are kept; 0: 16 KiB.
func Start(c Command, keep int) (*Peer, error) {
	p, err := open(&c, true)
	if err != nil {
		return nil, err
	}
	peer := &Peer{Stdin: p.stdin, Stdout: lastWords{p.stdout}, child: p.child, stderr: collect(p.stderr, cmp.Or(keep, keepPeerStderr), 0),
		done: make(chan struct{})}
	go func() {
		<-p.child.done
		until := time.Now().Add(drain)
		_ = p.stdout.SetReadDeadline(until)
		_ = p.stdin.SetWriteDeadline(time.Now())
		peer.stderr.finish(until)
		close(peer.done)
	}()
	return peer, nil
}

// Done is closed when the peer has ended, by itself or not, and nothing of its group is left.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Exit says how the peer ended. It waits for Done.
func (p *Peer) Exit() Exit {
	<-p.done
	return p.child.exit
}

// Stderr gives what was kept of the peer's stderr so far.
func (p *Peer) Stderr() Output { return p.stderr.output() }

// Close ends the peer gently: its stdin is closed; after the grace it is asked to end (SIGTERM); after the grace once more
// it is killed. A grace of 0 kills at once. Close returns when nothing of its group is left, and may be called more than
// once.
func (p *Peer) Close(grace time.Duration) Exit {
	p.Stdin.Close()
	if grace > 0 {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-p.child.done:
		case <-t.C:
		}
	}
	p.child.end(grace)
	<-p.done
	p.Stdout.Close()
	return p.child.exit
}

// lastWords reads a pipe whose deadline is only set when its writer has ended.
type lastWords struct{ pipe *os.File }

func (r lastWords) Read(b []byte) (int, error) {
	n, err := r.pipe.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

func (r lastWords) Close() error { return r.pipe.Close() }
