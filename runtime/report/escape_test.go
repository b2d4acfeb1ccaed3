package report

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/open-multi-agent/oma/runtime"
	"github.com/open-multi-agent/oma/spec"
)

func TestN16Escape(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "plain, größer 中 👍\n\tx", "plain, größer 中 👍\n\tx"},
		{"colour", "\x1b[31mred", `\u{1b}[31mred`},
		{"clipboard", "\x1b]52;c;YQ==\a", `\u{1b}]52;c;YQ==\u{7}`},
		{"C1", "\u009b2J\u0085", `\u{9b}2J\u{85}`},
		{"carriage return and delete", "safe\rrm\x7f", `safe\u{d}rm\u{7f}`},
		{"bidi", "a\u202eb\u2066c", `a\u{202e}b\u{2066}c`},
		{"zero width", "a\u200bb\ufeff\u00ad", `a\u{200b}b\u{feff}\u{ad}`},
		{"tags", "a\U000e0041", `a\u{e0041}`},
		{"line separators", "a\u2028b\u2029", `a\u{2028}b\u{2029}`},
		{"no UTF-8", "a\x9bb", "a\ufffdb"},
	} {
		if got := Escape(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestN16EscapeLog(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"start", "::add-mask::x", `\u{3a}:add-mask::x`},
		{"later line", "a\n::error::x", "a\n\\u{3a}:error::x"},
		{"after space", "a\n \t\u00a0\u3000::error::x", "a\n \t\u00a0\u3000\\u{3a}:error::x"},
		{"after what is not seen", "\ufe0f::error::x", "\ufe0f\\u{3a}:error::x"},
		{"around what is not seen", ":\u034f:error::x", "\\u{3a}\u034f:error::x"},
		{"around a filler", ":\u3164:error::x", "\\u{3a}\u3164:error::x"},
		{"within a line", "std::vector a::b", "std::vector a::b"},
		{"one colon", ":tada:", ":tada:"},
		{"older command, anywhere", `{"m": "x ##[add-mask]y"}`, `{"m": "x ##\u{5b}add-mask]y"}`},
		{"other systems", "##vso[task.complete]##teamcity[x", `##vso\u{5b}task.complete]##teamcity\u{5b}x`},
		{"with what is not seen", "#\u034f#\ufe0f[x", "#\u034f#\ufe0f\\u{5b}x"},
		{"three", "###[x", `###\u{5b}x`},
		{"an attribute", "#[derive] ## Title [x](y)", "#[derive] ## Title [x](y)"},
	} {
		if got := EscapeLog(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnnotationsAreEscaped(t *testing.T) {
	var b strings.Builder
	annotate(&b, "error", "a: 50%, b\n", "c: 50%,\r\nd")
	if want := "::error title=a%3A 50%25%2C b%0A::c: 50%25,%0D%0Ad\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// said puts one text wherever a verdict has foreign text.
func said(s string) *runtime.GateVerdict {
	word := s + "?" // never one that means something
	reasons := []runtime.GateReason{{Code: "role-failed", Message: s}, {Code: "integrity", Message: s}, {Code: word, Message: s}}
	r := &spec.Receipt{
		Governance: &spec.Governance{GovernanceIntent: spec.IntentRequired, RequiredRoles: []string{s, "b" + s, "c" + s}},
		Topology:   spec.Topology{RolesExecuted: []string{"a", s}, RolesFailed: []string{"b" + s}, RolesNotStarted: []string{s}},
		Tasks: []spec.TaskRecord{
			{ID: s, Title: s, Assignee: "b" + s, Status: spec.TaskFailed, StartedAt: "x", StopReason: spec.StopReason(s), Cause: s},
			{ID: s, Assignee: s, Status: s, ErrorInfo: &spec.ErrorInfo{Message: s}},
		},
	}
	return &runtime.GateVerdict{ExitCode: 4, Integrity: word, GovernanceConclusion: word, ReleaseConclusion: spec.Unsatisfied, Reasons: reasons,
		Release: []spec.Released{{Name: s, Outcome: word, Reason: s}}, Receipt: r, RunID: s, Team: s}
}

// What a runner would obey: :: at the start of a line, spaces and unseen characters aside, or ##name[ anywhere.
var (
	lineCommand = regexp.MustCompile(`(?m)^[\s\p{M}\p{Z}]*:[\p{M}]*:`)
	anyCommand  = regexp.MustCompile(`#\p{M}*#[#a-zA-Z\p{M}]*\[`)
	forged      = regexp.MustCompile(`(?m)^(## oma gate: )?PASS`)
	ownCommand  = regexp.MustCompile(`(?m)^::(error|notice) title=[^:,\n]*::`)
)

func FuzzNothingEscapes(f *testing.F) {
	for _, s := range []string{"", "plain", hostile, "::error::x", "\n::set-output name=a::b", "##[group]x", "]]>", "&lt;", "<!--", "```\n", "\xff\xfe", "\ufffe\uffff",
		"\u2028::x::", "%0A::error::x", "#\u0301#[x", ":\ufe0f:error::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := said(s)
		for format, show := range everyFormat() {
			got := render(t, show, v)
			if i := strings.IndexFunc(got, hidden); i >= 0 || !utf8.ValidString(got) {
				t.Errorf("%s: a character that is not to be seen at %d in %q", format, i, got)
			}
			if m := anyCommand.FindString(got); m != "" {
				t.Errorf("%s: %q is a command in %q", format, m, got)
			}
			if m := lineCommand.FindString(ownCommand.ReplaceAllString(got, "own")); m != "" {
				t.Errorf("%s: %q is a command of the text in %q", format, m, got)
			}
			if m := forged.FindString(got); m != "" {
				t.Errorf("%s: %q was forged in %q", format, m, got)
			}
		}
		structures(t, s, v)
	})
}

// structures checks that no text adds to or takes from what each format is made of.
func structures(t *testing.T, s string, v *runtime.GateVerdict) {
	plain := said("plain")
	count := func(format, part string) {
		f := everyFormat()[format]
		if got, want := strings.Count(render(t, f, v), part), strings.Count(render(t, f, plain), part); got != want {
			t.Errorf("%s has %d times %q, want %d", format, got, part, want)
		}
	}
	count("text", "\n")
	count("github", "\n")
	count("summary", "\n")
	count("summary", "|")
	if body := render(t, Summary, v); strings.ContainsAny(strings.NewReplacer("<code>", "", "</code>", "").Replace(body), "<>`[]@\\") {
		t.Errorf("summary: markup of the text's own in %q", body)
	}
	if got, want := suite(t, render(t, Formats()["junit"], v)), suite(t, render(t, Formats()["junit"], plain)); got.Tests != want.Tests || got.Failures != want.Failures {
		t.Errorf("junit: %d of %d fail, want %d of %d", got.Failures, got.Tests, want.Failures, want.Tests)
	}
	var back runtime.GateVerdict
	if err := json.Unmarshal([]byte(render(t, Formats()["json"], v)), &back); err != nil {
		t.Fatal(err)
	}
	if got := back.Reasons[0].Message; utf8.ValidString(s) && got != s {
		t.Errorf("json: %q reads back as %q", s, got)
	}
}

func FuzzEscapeIsFinal(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, s string) {
		once := EscapeLog(s)
		if twice := EscapeLog(once); twice != once {
			t.Errorf("escaping twice gives %q, once %q", twice, once)
		}
		if strings.ContainsFunc(once, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("a control character is left in %q", once)
		}
	})
}
