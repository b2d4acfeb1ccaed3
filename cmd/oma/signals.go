package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/open-multi-agent/oma/runtime"
)

// interruption turns signals into an orderly end: the first lets calls in flight finish and starts none, a second, or
// the end of the grace time, stops them.
type interruption struct {
	ctx    context.Context
	drain  chan struct{}
	signal atomic.Int32
	stop   func()
	first  func() // called at the first
}

func (a *app) watchSignals(parent context.Context, grace time.Duration, first func()) *interruption {
	ctx, cancel := context.WithCancel(parent)
	in := &interruption{ctx: ctx, drain: make(chan struct{}), stop: cancel, first: first}
	if !a.signals {
		return in
	}
	// A reader that goes away must not end the run without a receipt. Notify, not Ignore: commands would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ch := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup ignores one, and a script those of its jobs in the background: so it stays
			signal.Notify(ch, s)
		}
	}
	in.stop = func() {
		signal.Stop(ch)
		cancel()
	}
	go in.wait(ch, grace, cancel)
	return in
}

func (in *interruption) wait(ch <-chan os.Signal, grace time.Duration, cancel func()) {
	select {
	case s := <-ch:
		in.signal.Store(int32(s.(syscall.Signal)))
		close(in.drain)
		in.first()
	case <-in.ctx.Done():
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
	case <-in.ctx.Done():
	}
	cancel()
}

// code is the exit code of the signal that came. Without one the run was cancelled from inside the program.
func (in *interruption) code() int {
	switch syscall.Signal(in.signal.Load()) {
	case syscall.SIGTERM, syscall.SIGHUP:
		return runtime.ExitTerminated
	case syscall.SIGINT:
		return runtime.ExitInterrupted
	}
	return runtime.ExitFailed
}
