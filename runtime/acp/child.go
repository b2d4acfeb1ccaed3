package acp

import (
	"io"
	"time"

	"github.com/open-multi-agent/oma/runtime/process"
)

// child is a running agent.
type child struct {
	in     io.WriteCloser
	out    io.ReadCloser
	done   <-chan struct{}           // closed when it has ended
	exit   func() string             // how, in words. It waits for done
	stderr func() string             // what it complained about so far, bounded
	close  func(grace time.Duration) // ends it with all it started. It may be called more than once
}

// keepStderr is how much of the start and of the end of what an agent complains about is kept, in bytes.
const keepStderr = 8 << 10

// start starts the agent's program.
func start(o *Options) (*child, error) {
	program, err := process.Find(o.Command[0], o.Dir, process.Variable(o.Env, "PATH"))
	if err != nil {
		return nil, err
	}
	p, err := process.Start(process.Command{Program: program, Args: o.Command[1:], Dir: o.Dir, Env: o.Env}, keepStderr)
	if err != nil {
		return nil, err
	}
	return &child{
		in: p.Stdin, out: p.Stdout, done: p.Done(),
		exit:   func() string { return p.Exit().String() },
		stderr: func() string { return p.Stderr().Text },
		close:  func(grace time.Duration) { p.Close(grace) },
	}, nil
}
