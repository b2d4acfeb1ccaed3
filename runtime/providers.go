package runtime

import (
	"net"
	"net/url"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// Where the models of a kind answer unless the team file says otherwise. Ollama asks for no key.
const (
	OpenAIBaseURL = "https://api.openai.com/v1"
	OllamaBaseURL = "http://127.0.0.1:11434/v1"
)

// builtinProviders can be used without being declared. Their names cannot be taken.
var builtinProviders = map[string]spec.Provider{
	"openai": {Kind: "openai", APIKey: &spec.SecretRef{Env: "OPENAI_API_KEY"}},
	"ollama": {Kind: "ollama"},
}

// BaseURL is the address at which a provider's models answer. Empty: it answers by itself and asks nobody.
func BaseURL(p spec.Provider) string {
	switch {
	case p.BaseURL != "":
		return p.BaseURL
	case p.Kind == "openai":
		return OpenAIBaseURL
	case p.Kind == "ollama":
		return OllamaBaseURL
	}
	return ""
}

func (c *compiler) providers() {
	c.plan.Providers = map[string]spec.PlanProvider{}
	for _, name := range sortedKeys(c.team.Providers) {
		p, at := c.team.Providers[name], spec.Path("providers").Key(name)
		if _, taken := builtinProviders[name]; taken {
			c.diags.Errorf("provider-name-taken", at, "%q is the name of a built-in provider", name).Hint = "choose another name, such as my-" + name
			continue
		}
		if name := secretParameter(p.BaseURL); name != "" {
			c.diags.Errorf("secret-in-url", at.Key("baseURL"), "baseURL carries the secret %s", name).Hint = "a plan and a log show addresses; use apiKey: {env: NAME}"
		}
		if host := clearHost(p.BaseURL); p.APIKey != nil && host != "" {
			c.diags.Warnf("key-in-clear", at.Key("baseURL"), "the key goes to %s without encryption, where anybody on the way can read it", host).Hint = "use https"
		}
		out := spec.PlanProvider{Provider: p}
		if p.Cassette != "" {
			out.CassetteDigest = c.b.Cassettes[p.Cassette].Digest
		}
		c.plan.Providers[name] = out
	}
}

// secretParameter gives the query parameter that looks like it holds a secret, or nothing.
func secretParameter(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "" // whoever dials it says so
	}
	for _, name := range sortedKeys(u.Query()) {
		if redact.SensitiveKey(name) || name == "key" {
			return "parameter " + name
		}
	}
	return ""
}

// clearHost gives the host of an address that is asked over the network without encryption, or nothing.
func clearHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host).IsLoopback() {
		return ""
	}
	return host
}

// provider gives an agent's provider and puts a built-in one into the plan when it is used.
func (c *compiler) provider(name string) (spec.PlanProvider, bool) {
	if p, ok := c.plan.Providers[name]; ok {
		return p, true
	}
	b, ok := builtinProviders[name]
	if ok {
		c.plan.Providers[name] = spec.PlanProvider{Provider: b}
	}
	return c.plan.Providers[name], ok
}
