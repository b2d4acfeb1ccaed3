package runtime

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/redact"
)

// shelf is a killable log that keeps attachments, which survive it.
type shelf struct {
	killable
	mu   sync.Mutex // Kept is called from any goroutine
	kept map[string][]byte
	full error
}

func (s *shelf) Keep(digest string, data []byte) error {
	if s.full != nil {
		return s.full
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[digest] = bytes.Clone(data)
	return nil
}

func (s *shelf) Kept(digest string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.kept[digest]; ok {
		return b, nil
	}
	return nil, errors.New("it is not on the shelf")
}

func newShelf(left int) *shelf {
	return &shelf{killable: killable{left: left}, kept: map[string][]byte{}}
}

var picture = []byte("\x89PNG\r\n\x1a\n and some bytes that are seen nowhere")

// camera is a tool that gives a picture, a file elsewhere and text.
func camera() Tool {
	t := echo(func(context.Context, Invocation) spec.ToolResult {
		return spec.ToolResult{Text: "seen\n[image: image/png; inline data]", Attachments: []spec.Attachment{
			{Type: spec.AttachImage, MediaType: "image/png", Data: picture}, {Type: spec.AttachFile, MediaType: "a/b", Filename: "f", URL: "https://h/f"}}}
	})
	t.ReadOnly = true
	return t
}

// viewer looks at a picture twice and answers. It fails where a picture does not reach it as it was taken.
func viewer(asked *int) Model {
	return modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		*asked++
		n := 0
		for _, m := range req.Messages {
			if len(m.Attachments) == 2 && bytes.Equal(m.Attachments[0].Data, picture) && m.Attachments[1].URL == "https://h/f" {
				n++
			}
		}
		if n != req.Turn-1 {
			return nil, fmt.Errorf("turn %d sees %d pictures", req.Turn, n)
		}
		if req.Turn <= 2 {
			return callTool("echo", fmt.Sprintf(`{"text":"%d"}`, req.Turn)), nil
		}
		return answerText("both seen"), nil
	})
}

// gallery is the plan of both.
func gallery() *spec.Plan {
	p := team(1, 1)
	p.Agents[0].Tools[0].ReadOnly = true // so that nobody is asked about a call that was in flight
	return p
}

func look(t *testing.T, log *shelf, past *Past, change ...func(*Options)) (*Result, error) {
	t.Helper()
	asked := 0
	return run(t, gallery(), viewer(&asked), toolMap{camera()}, func(o *Options) {
		o.Journal, o.Past = log, past
		for _, f := range change {
			f(o)
		}
	})
}

// SE13: a run with pictures in its transcript goes on from wherever it was killed, with the same bytes and to the same end;
// its log and receipt have none of them, and the gate tells the run again from its log alone.
func TestPicturesSurviveAKill(t *testing.T) {
	whole := newShelf(-1)
	res, err := look(t, whole, nil)
	if err != nil || !res.Receipt.Success {
		t.Fatal(err, res.Receipt.Status)
	}
	for name, text := range map[string]string{"log": whole.buf.String(), "receipt": string(res.Bytes)} {
		if strings.Contains(text, "seen nowhere") || strings.Contains(text, base64.StdEncoding.EncodeToString(picture)[:20]) {
			t.Errorf("the bytes are in the %s", name)
		}
	}
	if len(whole.kept) != 1 || strings.Count(whole.buf.String(), `"size":45`) != 2 {
		t.Errorf("%d kept, log %s", len(whole.kept), whole.buf.String())
	}
	for k := 3; k < whole.lines; k++ {
		first := newShelf(k)
		if _, err := look(t, first, nil); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		past, err := ReadPast(bytes.NewReader(first.buf.Bytes()))
		if err != nil {
			t.Fatalf("after %d: %v", k, err)
		}
		second := newShelf(-1)
		second.kept = first.kept
		second.buf.Write(first.buf.Bytes())
		got, err := look(t, second, past)
		if err != nil {
			t.Fatalf("after %d: %v", k, err)
		}
		if diff := cmp.Diff(facts(res.Receipt), facts(got.Receipt)); diff != "" && !strings.Contains(second.buf.String(), `"repeated":`) {
			t.Fatalf("after %d of %d records:\n%s", k, whole.lines, diff)
		}
		if !got.Receipt.Success {
			t.Fatalf("after %d: %+v", k, got.Receipt.Status)
		}
		if v := Gate(got.Bytes, GateOptions{Unbound: true, Log: bytes.NewReader(second.buf.Bytes()), AllowNotApplicable: true}); v.Integrity != IntegrityChain {
			t.Fatalf("after %d: %+v", k, v.Reasons)
		}
	}
}

// killedAfterPictures is a run that was killed before its last request.
func killedAfterPictures(t *testing.T) *shelf {
	t.Helper()
	for k := 3; ; k++ {
		log := newShelf(k)
		if _, err := look(t, log, nil); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if strings.Count(log.buf.String(), `"kind":"tool/result"`) == 2 {
			return log
		}
	}
}

// What was kept is not there any more, or is something else: no request goes out with less than the first attempt's.
func TestLostPicturesEndTheTask(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(map[string][]byte)
		want string
	}{
		"gone": {func(m map[string][]byte) { clear(m) }, "it is not on the shelf"},
		"another": {func(m map[string][]byte) {
			for d := range m {
				m[d] = []byte("other")
			}
		}, "what was kept of it is not sha256:"},
	} {
		first := killedAfterPictures(t)
		past, err := ReadPast(bytes.NewReader(first.buf.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		second := newShelf(-1)
		second.kept = first.kept
		c.lose(second.kept)
		asked := 0
		res, err := run(t, gallery(), viewer(&asked), toolMap{camera()}, func(o *Options) { o.Journal, o.Past = second, past })
		if err != nil {
			t.Fatal(err)
		}
		e := res.Receipt.Tasks[0].ErrorInfo
		if e == nil || e.Code != "ATTACHMENT_LOST" || !strings.Contains(e.Message, `an attachment of call "c1" is not there any more: `+c.want) || asked != 0 {
			t.Errorf("%s: %+v, asked %d times", name, e, asked)
		}
	}
}

// Bytes that cannot be kept end the run as a log that fails does.
func TestAShelfThatIsFullEndsTheRun(t *testing.T) {
	log := newShelf(-1)
	log.full = errors.New("no space left")
	res, err := look(t, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Receipt.Success || !strings.Contains(string(res.Bytes), "no space left") || strings.Contains(log.buf.String(), "tool/result") {
		t.Errorf("%+v\n%s", res.Receipt.Status, log.buf.String())
	}
}

// A redacted log keeps no bytes at all, and takes secrets out of names and addresses.
func TestRedactedLogsKeepNoPictures(t *testing.T) {
	log := newShelf(-1)
	res, err := look(t, log, nil, func(o *Options) { o.Withhold = redact.New(redact.Secret{Name: "x", Value: "https://h/f"}) })
	if err != nil || !res.Receipt.Success || len(log.kept) != 0 {
		t.Fatal(err, len(log.kept))
	}
	if s := log.buf.String(); !strings.Contains(s, `"url":"[redacted]"`) || strings.Contains(s, "https://h/f") {
		t.Error(s)
	}
}

// give runs one call of a tool and gives what the model was told.
func give(t *testing.T, result spec.ToolResult, change func(*Options)) (told spec.Message, log string) {
	t.Helper()
	m := modelFunc(func(_ context.Context, req *spec.ModelRequest) (*spec.ModelResponse, error) {
		if req.Turn == 1 {
			return callTool("echo", `{"text":"a"}`), nil
		}
		told = req.Messages[len(req.Messages)-1]
		return answerText("done"), nil
	})
	p := team(1, 1)
	p.Agents[0].MaxToolOutputChars = 100
	j := newShelf(-1)
	if _, err := run(t, p, m, toolMap{echo(func(context.Context, Invocation) spec.ToolResult { return result })}, func(o *Options) {
		if o.Journal = j; change != nil {
			change(o)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return told, j.buf.String()
}

// O1, O4: what the door makes of attachments, whatever tool gave them.
func TestTheDoorLooksAtAttachments(t *testing.T) {
	png := spec.Attachment{Type: spec.AttachImage, MediaType: "image/png", Data: picture}
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		result      spec.ToolResult
		text        string
		attachments int
		isError     bool
	}{
		"passed on":        {spec.ToolResult{Text: "a", Attachments: []spec.Attachment{png, png}}, "a", 2, false},
		"an error is text": {spec.ToolResult{Text: "a", Attachments: []spec.Attachment{png}, IsError: true}, "a", 0, true},
		"one of no kind":   {spec.ToolResult{Text: "a", Attachments: []spec.Attachment{png, {}}}, `Invalid output for tool "echo": attachment 2: type must be "text", "image", or "file"`, 0, true},
		"too many":         {spec.ToolResult{Text: "a", Attachments: make([]spec.Attachment, 17)}, `Invalid output for tool "echo": there are 17 attachments, and 16 is the most for one result`, 0, true},
		"long text":        {spec.ToolResult{Text: long}, long[:44] + "\n\n[...truncated 136 characters...]\n\n", 0, false},
		"chosen text":      {spec.ToolResult{Text: long, Chosen: true}, long, 0, false},
		"long error":       {spec.ToolResult{Text: long, Chosen: true, IsError: true}, long[:44] + "\n\n[...truncated 136 characters...]\n\n", 0, true},
	} {
		told, _ := give(t, c.result, nil)
		if !strings.HasPrefix(told.Text, c.text) || len(told.Attachments) != c.attachments || told.IsError != c.isError {
			t.Errorf("%s: %+v", name, told)
		}
	}
}

// D11: a resolved secret in a file does not go to the model's provider, nor into the log or what it keeps.
func TestD11FilesHoldNoResolvedSecret(t *testing.T) {
	const key = "sk-live-0123456789"
	hide := func(s string) string { return strings.ReplaceAll(s, key, "${secret:server}") }
	told, log := give(t, spec.ToolResult{Text: "a", Attachments: []spec.Attachment{
		{Type: spec.AttachFile, MediaType: "text/plain", Filename: key, Data: []byte("KEY=" + key)},
		{Type: spec.AttachImage, MediaType: "image/png", URL: "https://h/?key=" + key}}}, func(o *Options) { o.Reference, o.Redact = hide, hide })
	if len(told.Attachments) != 2 || string(told.Attachments[0].Data) != "KEY=${secret:server}" || strings.Contains(told.Attachments[0].Filename+told.Attachments[1].URL, key) {
		t.Errorf("%+v", told)
	}
	if strings.Contains(log, key) {
		t.Error(log)
	}
}
