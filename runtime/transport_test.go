package runtime

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// A model's server is asked where the policy lets it be asked, and a request that leads elsewhere is not made.
func TestModelTransport(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	only := func(origins ...string) *spec.EgressPolicy { return &spec.EgressPolicy{Allow: &origins} }
	for name, c := range map[string]struct {
		policy  *spec.EgressPolicy
		address string
		denied  string // empty: the server is asked
	}{
		"no policy":             {nil, s.URL, ""},
		"its origin":            {only(s.URL), s.URL + "/v1/chat?x=1", ""},
		"offline":               {&spec.EgressPolicy{Offline: true}, s.URL, ""},
		"offline by name":       {&spec.EgressPolicy{Offline: true}, "http://localhost" + port, ""},
		"another name for it":   {only(s.URL), "http://localhost" + port, "http://localhost" + port + " is not in egressPolicy.allow"},
		"another port":          {only("http://127.0.0.1"), s.URL, "is not in egressPolicy.allow"},
		"another scheme":        {only(s.URL), "https://127.0.0.1" + port, "is not in egressPolicy.allow"},
		"no origin at all":      {only(), s.URL, "is not in egressPolicy.allow"},
		"a policy without word": {&spec.EgressPolicy{}, s.URL, "lets nothing through"},
		"offline, elsewhere":    {&spec.EgressPolicy{Offline: true}, "http://192.0.2.1/", "http://192.0.2.1 is not on this machine"},
		"offline, by a name":    {&spec.EgressPolicy{Offline: true}, "http://gateway.invalid/", "is not on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			resp, err := (&http.Client{Transport: ModelTransport(c.policy)}).Get(c.address)
			if c.denied == "" {
				if err != nil || asked != 1 {
					t.Fatalf("the server was asked %d times: %v", asked, err)
				}
				resp.Body.Close()
				return
			}
			var denied *EgressError
			if !errors.As(err, &denied) || !strings.Contains(denied.Why, c.denied) || asked != 0 {
				t.Errorf("the server was asked %d times: %v", asked, err)
			}
		})
	}
}

// Whoever answers for a name may lead it to another machine, today or at the next call. What counts is where it leads.
func TestOfflineLooksWhereNamesLead(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for to, want := range map[string]bool{"127.0.0.1": true, "192.0.2.1": false, "169.254.169.254": false, "0.0.0.0": false} {
		d := modelDialer(&spec.EgressPolicy{Offline: true})
		d.Resolver = answering(t, net.ParseIP(to).To4())
		conn, err := d.DialContext(t.Context(), "tcp", "rebound.test"+port)
		var denied *EgressError
		if got := err == nil; got != want || !got && !errors.As(err, &denied) {
			t.Errorf("a name that leads to %s: %v", to, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
	for address, want := range map[string]bool{"127.0.0.1:80": true, "127.9.9.9:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"10.0.0.1:80": false, "[::]:80": false, "[fe80::1%lo]:80": false, "[::ffff:10.0.0.1]:80": false, "localhost:80": false, "": false} {
		if err := loopbackAlone(t.Context(), "tcp", address, nil); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// answering is a resolver that leads every name to one address.
func answering(t *testing.T, ip net.IP) *net.Resolver {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		for query := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			end := 12 + strings.IndexByte(string(query[12:n]), 0) + 5 // of the question: a name, its type and class
			answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
			if query[end-3] == 1 { // it asks for an IPv4 address
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, ip...)
			}
			server.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// No proxy stands between, whatever the environment says.
func TestModelTransportHasNoProxy(t *testing.T) {
	held, ok := ModelTransport(&spec.EgressPolicy{Offline: true}).(*boundTransport)
	if !ok || held.base.(*http.Transport).Proxy != nil {
		t.Error("the transport under a policy has a proxy")
	}
	if ModelTransport(nil).(*http.Transport).Proxy != nil {
		t.Error("the transport without one has a proxy")
	}
}
