package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

const (
	ghp = "ghp_0000000000000000000000000000000000"
	jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
	pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n"
)

// check applies a redactor once, compares, and applies it again, which must change nothing.
func check(t *testing.T, r *redact.Redactor, in, want string) {
	t.Helper()
	got := r.Text(in)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Text(%q) (-want +got):\n%s", in, diff)
	}
	if again := r.Text(got); again != got {
		t.Errorf("not idempotent: %q, then %q", got, again)
	}
}

func TestTextHides(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"SE-01 flag":               {`run --api-key sk-test-0000000000000000 x`, `run --api-key [redacted] x`},
		"SE-01 flag =":             {`run --api-key=hunter2 x`, `run --api-key=[redacted] x`},
		"SE-01 flag quoted":        {`run --password "my pass" x`, `run --password "[redacted]" x`},
		"SE-01 arguments":          {`["--api-key","hunter2", "x"]`, `["--api-key","[redacted]", "x"]`},
		"SE-01 arguments, lines":   {"[\n \"--token\",\n \"hunter2\"\n]", "[\n \"--token\",\n \"[redacted]\"\n]"},
		"SE-01 arguments, YAML":    {"- --token\n- hunter2\n- x", "- --token\n- [redacted]\n- x"},
		"flag, one dash":           {`mysql -password hunter2 db`, `mysql -password [redacted] db`},
		"flag, line continued":     {"x --token \\\n  hunter2 y", "x --token \\\n  [redacted] y"},
		"SE-01 environment":        {`{T: "` + ghp + `"}`, `{T: "[redacted]"}`},
		"SE-01 header":             {`curl -H 'Authorization: Bearer abc.def.ghi' http://127.0.0.1:9`, `curl -H 'Authorization: [redacted]' http://127.0.0.1:9`},
		"header, escaped quotes":   {`{"c":"curl -H \"Authorization: Bearer a.b\" http://x"}`, `{"c":"curl -H \"Authorization: [redacted]\" http://x"}`},
		"header line":              {"GET /\r\nAuthorization: Digest user=\"a\", response=\"b\"\r\nHost: x", "GET /\r\nAuthorization: [redacted]\r\nHost: x"},
		"cookie line":              {"Set-Cookie: a=b; c=d\nx", "Set-Cookie: [redacted]\nx"},
		"other header":             {`-H "X-Api-Key: abc def" x`, `-H "X-Api-Key: [redacted]" x`},
		"bearer":                   {`sent bearer abcdefgh.1 on`, `sent bearer [redacted] on`},
		"SE-03 address":            {`http://u:pw-0000@127.0.0.1:9/v1?key=sk-test-0000`, `http://[redacted]@127.0.0.1:9/v1?key=[redacted]`},
		"SE-03 echo":               {`"bad key sk-test-0000000000000000"`, `"bad key [redacted]"`},
		"user is a token":          {`https://abcdef@github.com/x`, `https://[redacted]@github.com/x`},
		"user and password, other": {`postgres://u:p@ss@db/x`, `postgres://[redacted]@db/x`},
		"sharp edge 12, assign":    {`user=bob password=hunter2`, `user=bob password=[redacted]`},
		"sharp edge 12, query":     {`http://x/?api_key=abc&x=1`, `http://x/?api_key=[redacted]&x=1`},
		"sharp edge 12, escape":    {`{"password": "a\"b\\", "x": 1}`, `{"password": "[redacted]", "x": 1}`},
		"escape inside escape":     {`{"a":"{\"password\":\"x\\\"y\",\"n\":1}"}`, `{"a":"{\"password\":\"[redacted]\",\"n\":1}"}`},
		"sharp edge 12, JWT":       {`got ` + jwt + ` ok`, `got [redacted] ok`},
		"JWT without end":          {`got eyJhbGciOiJIUzI1NiJ9.eyJzdWI`, `got [redacted]`},
		"sharp edge 12, Google":    {`k AIzaSyA0000000000000000000000000000000 x`, `k [redacted] x`},
		"private key":              {"a\n" + pem + "-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		"private key without end":  {"a\n" + pem, "a\n[redacted]"},
		"private key in JSON":      {`{"k":"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"}`, `{"k":"[redacted]\n"}`},
		"GitHub":                   {"github_pat_00000000000000000000 gho_00000000000000000000", "[redacted] [redacted]"},
		"AWS":                      {"id AKIA0123456789ABCDEF", "id [redacted]"},
		"Slack":                    {"xoxb-0000000000-a", "[redacted]"},
		"Stripe":                   {"sk_live_0000000000000000", "[redacted]"},
		"after an escape":          {`a\nsk-0000000000000000`, `a\n[redacted]`},
		"key after an escape":      {`a\napi_key=abc x`, `a\napi_key=[redacted] x`},
		"camel case":               {`accessToken: abc, x`, `accessToken: [redacted]`},
		"in an object":             {`{accessToken: abc, x: 1}`, `{accessToken: [redacted], x: 1}`},
		"JSON":                     {`{"clientSecret":"a b","n":5}`, `{"clientSecret":"[redacted]","n":5}`},
		"JSON number":              {`{"password": 1234, "n":5}`, `{"password": [redacted], "n":5}`},
		"JSON list":                {`{"credentials": ["a]", "b"], "n":5}`, `{"credentials": [redacted], "n":5}`},
		"JSON object":              {`{"credentials": {"gh": "a}"}, "n":5}`, `{"credentials": [redacted], "n":5}`},
		"single quotes":            {`{'token': 'abc', 'n': 1}`, `{'token': '[redacted]', 'n': 1}`},
		"Python bytes":             {`password=b'a b', n=1`, `password=b'[redacted]', n=1`},
		"shell quotes":             {`PASSWORD="a b"c make`, `PASSWORD=[redacted] make`},
		"shell, quote in quotes":   {`PASSWORD='it'"'"'s my'\'' own' make`, `PASSWORD='[redacted]' make`},
		"JSON, broken line":        {"\"password\":\n  \"hunter2\"", "\"password\":\n  \"[redacted]\""},
		"quote inside":             {`PASSWORD=a"b c`, `PASSWORD=[redacted] c`},
		"quoted command":           {`"login password=hunter2 --x"`, `"login password=[redacted] --x"`},
		"quoted last":              {`"login password=hunter2"}`, `"login password=[redacted]"}`},
		"YAML":                     {"a: 1\n  password: correct horse  \nb: 2", "a: 1\n  password: [redacted]  \nb: 2"},
		"INI":                      {"password = correct horse\nb = 2", "password = [redacted]\nb = 2"},
		"environment line":         {"PGPASSWORD=hunter2 psql -c x", "PGPASSWORD=[redacted] psql -c x"},
		"npmrc":                    {"//registry/:_authToken=abc", "//registry/:_authToken=[redacted]"},
		"AWS file":                 {"aws_secret_access_key = a/b+c", "aws_secret_access_key = [redacted]"},
		"words":                    {"your Secret access key: a/b+c", "your Secret access key: [redacted]"},
		"connection string":        {"Server=x;Uid=sa;Pwd=hunter2;N=1", "Server=x;Uid=sa;Pwd=[redacted];N=1"},
		"Ruby":                     {`x[:a] :password => "abc", n`, `x[:a] :password => "[redacted]", n`},
		"Python index":             {`os.environ["API_KEY"] = "abc"`, `os.environ["API_KEY"] = "[redacted]"`},
		"odd capitals":             {`PassWord=abc x`, `PassWord=[redacted] x`},
		"not closed":               {`password="abc def`, `password="[redacted]`},
		"Go":                       {`password := "abc"`, `password := "[redacted]"`},
	} {
		t.Run(name, func(t *testing.T) { check(t, nil, c.in, c.want) })
	}
}

func TestTextKeeps(t *testing.T) {
	for _, text := range []string{
		"", "a", "-", "--", ":", "=", "://", "[redacted]", "[redacted][redacted]", "a [redacted] b",
		"token_budget: 5000, max_tokens: 100, tokenUsage {input: 4}, input_tokens=5", // SE-04
		`{"totalTokens":{"input":9,"output":1},"tokens":5,"tokenUsage":{"input":1}}`,
		"secretary: Bob", "session: 42 users", "PWD=/srv/app", "PWD=~/x OLDPWD=/y", "cd; pwd: /x",
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "id: 123e4567-e89b-12d3-a456-426614174000",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"task-aaaaaaaaaaaaaaaaaaaa risk-aaaaaaaaaaaaaaaaaaaa", "max_token: 5", "cost_per_token=0.1", "eos_token: x",
		"token::Kind", "if token != nil {", "password:\n  x", "password=", "password=&a=b", "apiKeyEnv: OPENAI_API_KEY",
		"--token-file /run/x --password-stdin --token --verbose", "--token", "SECRET_NAME=x", "expires: token_type=bearer",
		`rule "no-network-after-secrets": a secret was read`, `"reason":"rule \"secrets\": ask first"`, `requirement "no-password": it is weak`,
		"public_key: abc", "cache-key: abc", "primaryKey: 5", "pass: 12, fail: 3", "tokenizer: bpe",
		"ssh://git@github.com/x", "http://x.com, mail me@x.com", "http://[::1]:80/a@b", "bearer of news",
		"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "eyJ", "eyJhbGciOiJIUzI1NiJ9", "a key: b",
	} {
		t.Run(text, func(t *testing.T) { check(t, nil, text, text) })
	}
}

func TestKnownValues(t *testing.T) {
	const value = "p@ss/wörd <1>\n2+?~"
	r := redact.New(redact.Secret{Name: "API", Value: "  " + value + "\n"}, redact.Secret{Name: "PIN", Value: "on"},
		redact.Secret{Name: "NONE"}, redact.Secret{Name: "MARK", Value: "redacted"}, redact.Secret{Name: "ONE", Value: "z"})
	quoted, _ := json.Marshal(value)
	std, web := base64.StdEncoding, base64.URLEncoding
	for name, c := range map[string]struct{ in, want string }{
		"plain":            {"a" + value + "b", "a[redacted]b"},
		"twice":            {value + value, "[redacted]"},
		"JSON":             {"a " + string(quoted), `a "[redacted]"`},
		"URL query":        {"a " + url.QueryEscape(value), "a [redacted]"},
		"URL path":         {"a " + url.PathEscape(value), "a [redacted]"},
		"URL, small hex":   {"a " + "p%40ss%2fw%c3%b6rd+%3c1%3e%0a2%2b%3f~", "a [redacted]"},
		"base64":           {"a " + std.EncodeToString([]byte(value)) + " b", "a [redacted] b"},
		"base64 URL":       {"a " + web.EncodeToString([]byte(value)) + " b", "a [redacted] b"},
		"base64, raw":      {"a " + base64.RawURLEncoding.EncodeToString([]byte(value)) + " b", "a [redacted] b"},
		"base64 of u:pw":   {"x " + std.EncodeToString([]byte("u:"+value+"!")) + " b", "x [redacted] b"},
		"base64 of us:pw":  {"x " + std.EncodeToString([]byte("us:"+value)) + " b", "x [redacted] b"},
		"short, a word":    {"x on y", "x [redacted] y"},
		"short, no word":   {"only one button, on_x", "only one button, on_x"},
		"short, in base64": {"b24=", "[redacted]="},
		"one letter":       {"z zone az z", "[redacted] zone az [redacted]"},
		"the mark":         {"redacted", "redacted"},
	} {
		t.Run(name, func(t *testing.T) { check(t, r, c.in, c.want) })
	}
}

func TestOverlappingValuesLeaveNoPart(t *testing.T) {
	r := redact.New(redact.Secret{Name: "A", Value: "abcdefgh"}, redact.Secret{Name: "B", Value: "efghijklm"})
	check(t, r, "x abcdefghijklm y", "x [redacted] y")
}

// Values that hold the mark itself can make a text that reads differently after every pass.
func TestTextThatDoesNotSettleIsWithheld(t *testing.T) {
	secrets := []redact.Secret{{Value: "12345678"}}
	for _, c := range []string{"a", "b", "c", "d", "e"} {
		secrets = append(secrets, redact.Secret{Value: c + redact.Mark + c})
	}
	check(t, redact.New(secrets...), "x a12345678a y", "x [redacted] y")
	check(t, redact.New(secrets...), "x edcba12345678abcde y", "[redacted]")
}

func TestReferences(t *testing.T) {
	r := redact.New(redact.Secret{Name: "API_KEY", Value: "abcdefgh"}, redact.Secret{Name: "DB", Value: "ijklmnop"})
	for in, want := range map[string]string{
		"password=hunter2 " + ghp: "password=hunter2 " + ghp, // patterns stay
		"x abcdefghijklmnop y":    "x ${secret:API_KEY}${secret:DB} y",
		"YWJjZGVmZ2g= y":          "${secret:API_KEY} y",
	} {
		if got := r.References(in); got != want {
			t.Errorf("References(%q) = %q, want %q", in, got, want)
		}
	}
	var none *redact.Redactor
	if got := none.References("abcdefgh"); got != "abcdefgh" {
		t.Errorf("nil redactor: %q", got)
	}
}

func TestValue(t *testing.T) {
	r := redact.New(redact.Secret{Name: "N", Value: "12345678"}, redact.Secret{Name: "A", Value: "abcdefgh"})
	in := map[string]any{
		"apiKey": map[string]any{"a": "b"}, "password": nil, "authorization": 5.0, "PWD": "/srv",
		"max_tokens": int64(100), "token_budget": int64(5000), "tokenUsage": map[string]any{"input": 1.0},
		"count": int64(12345678), "n": json.Number("12345678"), "ok": true,
		"command":  "login password=hunter2",
		"args":     []any{"--api-key", "hunter2", "--token", "--x", "y"},
		"abcdefgh": "value of abcdefgh",
		"headers":  []any{map[string]any{"name": "X-Api-Key", "value": "x"}, map[string]any{"name": "Host", "value": "x"}},
		"env":      map[string]string{"T": ghp, "HOME": "/root"}, "list": []string{"--token", "abc"},
		"other": struct{ Password string }{"x"},
	}
	want := map[string]any{
		"apiKey": "[redacted]", "password": nil, "authorization": "[redacted]", "PWD": "/srv",
		"max_tokens": int64(100), "token_budget": int64(5000), "tokenUsage": map[string]any{"input": 1.0},
		"count": "[redacted]", "n": "[redacted]", "ok": true,
		"command":    "login password=[redacted]",
		"args":       []any{"--api-key", "[redacted]", "--token", "--x", "y"},
		"[redacted]": "value of [redacted]",
		"headers":    []any{map[string]any{"name": "X-Api-Key", "value": "[redacted]"}, map[string]any{"name": "Host", "value": "x"}},
		"env":        map[string]any{"T": "[redacted]", "HOME": "/root"}, "list": []any{"--token", "[redacted]"},
		"other": "[redacted]",
	}
	got := r.Value(in)
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("Value (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, r.Value(got)); diff != "" {
		t.Errorf("not idempotent:\n%s", diff)
	}
	if in["command"] != "login password=hunter2" {
		t.Error("Value changed its argument")
	}
}

// SE-04: no field of the program's own reports may be hidden by its name.
func TestOwnFieldsStayReadable(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type, visit func(string))
	walk = func(rt reflect.Type, visit func(string)) {
		switch rt.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(rt.Elem(), visit)
		case reflect.Struct:
			if seen[rt] {
				return
			}
			seen[rt] = true
			for f := range rt.NumField() {
				name, _, _ := strings.Cut(rt.Field(f).Tag.Get("json"), ",")
				visit(name)
				walk(rt.Field(f).Type, visit)
			}
		}
	}
	n := 0
	for _, doc := range []any{spec.Receipt{}, spec.Event{}, spec.Cassette{}, spec.Plan{}} {
		walk(reflect.TypeOf(doc), func(name string) {
			n++
			if redact.SensitiveKey(name) && name != "apiKey" && name != "credentials" { // they say where secrets are
				t.Errorf("field %q reads as a secret", name)
			}
		})
	}
	if n < 100 {
		t.Errorf("only %d fields seen", n)
	}
}

func FuzzText(f *testing.F) {
	f.Add("user=bob password='a\\'b' "+pem, "hunter2hunter2")
	f.Add(`{"token":"\\\"x","a":[{"password":["b"]}]} --key=a --token "b`, "abcdefgh")
	f.Add("https://u:p@h/?key=a&token=b "+jwt+" Authorization: Bearer aaaaaaaaaa", "per-max-")
	f.Add("per-max-token=5 secret: 'tis", "per-max-")
	f.Fuzz(func(t *testing.T, s, value string) {
		r := redact.New(redact.Secret{Name: "V", Value: value})
		value = strings.TrimSpace(value)
		for _, text := range []string{s, s + value + s, value + s + url.QueryEscape(value) + "=" + s} {
			out := r.Text(text)
			if again := r.Text(out); again != out {
				t.Fatalf("not idempotent:\n%q\n%q\n%q", text, out, again)
			}
			if len([]rune(value)) >= 8 && !strings.Contains(redact.Mark, value) && strings.Contains(out, value) {
				t.Fatalf("%q leaks %q: %q", text, value, out)
			}
		}
		if refs := r.References(s); value == "" && refs != s {
			t.Fatalf("References without a value changed %q to %q", s, refs)
		}
	})
}

// ordinary is text as tools give it: prose, code, logs, numbers.
func ordinary(size int) string {
	const part = `The scheduler starts five tasks at once: review, build, test, lint and report. See https://example.com/a?b=c&d=e.
func (r *run) work(f Flow, t *task) { t.StartedAt = r.now; if n := len(t.Tools); n > 0 { r.tree(f, t, t.ID) } }
2026-01-02T03:04:05Z INFO request done status=200 bytes=5120 id=123e4567-e89b-12d3-a456-426614174000 user=bob
{"name":"reviewer","model":"gpt-4o","tokens":{"input":420,"output":31},"path":"src/main.go","max_tokens":100}
diff --git a/x.go b/x.go index 9fceb02..d0ae598 100644 --- a/x.go +++ b/x.go -old-name +new_name-of-thing
`
	return strings.Repeat(part, size/len(part)+1)[:size]
}

func TestOrdinaryTextIsKept(t *testing.T) { check(t, nil, ordinary(4096), ordinary(4096)) }

func BenchmarkText(b *testing.B) {
	known := make([]redact.Secret, 10)
	for i := range known {
		known[i] = redact.Secret{Name: "K", Value: strings.Repeat(string(rune('a'+i)), 6) + "/Zq8+long-value"}
	}
	text := ordinary(64 << 10)
	for name, r := range map[string]*redact.Redactor{"patterns": nil, "ten values": redact.New(known...)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Text(text)
			}
		})
	}
}

// BenchmarkHostile shows that text made to be slow is linear too.
func BenchmarkHostile(b *testing.B) {
	for _, part := range []string{"eyJ", "xsk-", "a://b:", `"token:`, `token='`, `--token,`, "password", `\"token:`, "-----BEGIN ",
		"Bearer ", "token={", "'secret' :"} {
		text := strings.Repeat(part, 64<<10/len(part))
		b.Run(part, func(b *testing.B) {
			for b.Loop() {
				(*redact.Redactor)(nil).Text(text)
			}
		})
	}
}

// TestMask: what is masked keeps its width, and what only names a secret stays.
func TestMask(t *testing.T) {
	star := func(s string) string { return strings.Repeat("*", len(s)) }
	const key, hub = "sk-0123456789abcdefghij", "ghp_0123456789abcdefghijklmn"
	for _, c := range []struct{ in, text, line string }{
		{"apiKey: {env: GATEWAY_KEY}, bogus: 1", "", ""},
		{`{"apiKey": {"env": "GATEWAY_KEY"}}`, "", ""},
		{"  apiKey: &key {env: GATEWAY_KEY}", "", ""},
		{"  apiKey: *key", "", ""},
		{"properties: {token: {type: string}}", "", ""},
		{"  password: |", "", ""},
		{"maxTokenBudget: 1000", "", ""},
		{`failing loading "https://x.example/token: y.json": not local`, "", `failing loading "https://x.example/token: ******": not local`},
		{"input.token == 5", "", ""},
		{"--token abc", "", ""},
		{"https://h/v1?api-version=1", "", ""},
		{"apiKey: hunter2, bogus: 1", "", "apiKey: *****************"},
		{"{apiKey: hunter2, bogus: 1}", "", "{apiKey: *******, bogus: 1}"},
		{"  apiKey: hunter 2", "", "  apiKey: ********"},
		{`  apiKey: "{hunter2"`, "", `  apiKey: "********"`},
		{"  apiKey: &key hunter2", "", "  apiKey: &key *******"},
		{"apiKey: " + key, "apiKey: " + star(key), "apiKey: " + star(key)},
		{"say " + hub + " twice " + hub, "say " + star(hub) + " twice " + star(hub), "say " + star(hub) + " twice " + star(hub)},
		{`"http://u:pw-1111@h/v1" does not fit`, `"http://*********@h/v1" does not fit`, `"http://*********@h/v1" does not fit`},
		{"https://h/v1?key=pw-1111&x=1", "https://h/v1?key=*******&x=1", "https://h/v1?key=*******&x=1"},
		{"https://h/v1?key=käse-1111", "https://h/v1?key=*********", "https://h/v1?key=*********"},
	} {
		if c.text == "" {
			c.text = c.in
		}
		if c.line == "" {
			c.line = c.text
		}
		if got := redact.Mask(c.in); got != c.text {
			t.Errorf("Mask(%q)\n got %q\nwant %q", c.in, got, c.text)
		}
		if got := redact.MaskLine(c.in); got != c.line {
			t.Errorf("MaskLine(%q)\n got %q\nwant %q", c.in, got, c.line)
		}
	}
}
