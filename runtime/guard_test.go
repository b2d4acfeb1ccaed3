package runtime

import (
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

func TestProviderMessage(t *testing.T) {
	for _, c := range []struct {
		info     spec.ErrorInfo
		attempts int
		want     string
	}{
		{spec.ErrorInfo{Provider: "gw", Message: "connection refused"}, 3, `provider "gw": connection refused (after 3 attempts)`},
		{spec.ErrorInfo{Provider: "gw", Message: "not found", HTTPStatus: 404}, 1,
			`provider "gw": HTTP 404: not found; check the model's name, and that baseURL ends as the server wants, mostly in /v1`},
		{spec.ErrorInfo{Provider: "gw", Message: "bad key", HTTPStatus: 401}, 1, `provider "gw": HTTP 401: bad key; check the key that apiKey names`},
	} {
		if got := providerMessage(&c.info, c.attempts); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}
