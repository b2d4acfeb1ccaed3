package runtime

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/open-multi-agent/oma/spec"
)

// What a model call that an egress policy forbids fails with. It is never tried again.
const (
	KindEgress       = "egress"
	CodeEgressDenied = "EGRESS_POLICY_DENIED"
)

// EgressError says why a request to a model was not made.
type EgressError struct{ Why string }

func (e *EgressError) Error() string { return e.Why }

// maxIdleConns is how many connections wait for their next turn. Tasks that run at once share a provider; with fewer
// than that, the others pay for a new connection and its handshake at every turn.
const maxIdleConns = 256

// ModelTransport is the way to a model's server, and no more of it than an egress policy lets be: a request that leads elsewhere
// gives an *EgressError. It takes no proxy from the environment. nil: anywhere.
func ModelTransport(p *spec.EgressPolicy) http.RoundTripper {
	// No limit on the wait for an answer: models think for minutes, and the call's context bounds it.
	t := &http.Transport{
		DialContext:         modelDialer(p).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: maxIdleConns,
		IdleConnTimeout:     90 * time.Second,
	}
	if p == nil {
		return t
	}
	return &boundTransport{policy: p, base: t}
}

func modelDialer(p *spec.EgressPolicy) *net.Dialer {
	d := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	if p != nil && p.Offline {
		d.ControlContext = loopbackAlone
	}
	return d
}

// boundTransport makes the requests that a policy lets be made.
type boundTransport struct {
	policy *spec.EgressPolicy
	base   http.RoundTripper
}

func (b *boundTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if why := OutsideEgress(b.policy, r.URL.String()); why != "" {
		if r.Body != nil {
			r.Body.Close() // as every RoundTripper does
		}
		return nil, &EgressError{why}
	}
	return b.base.RoundTrip(r)
}

// loopbackAlone refuses to connect to what a name has led to, if that is another machine: names are looked up by whoever is
// asked for them, and localhost is one.
func loopbackAlone(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err == nil && to.Addr().Unmap().IsLoopback() {
		return nil
	}
	return &EgressError{fmt.Sprintf("the address leads to %s, which is not on this machine, and egressPolicy.offline is true", address)}
}
