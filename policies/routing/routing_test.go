package routing

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestUnits is G26.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		name, goal string
		want       int
	}{
		{"nothing", "", 0},
		{"spaces", " \t\r\n\v\f\u00a0\u2003\u2028\u3000\ufeff", 0},
		{"one letter", "x", 1},
		{"a short word", "abc", 3},
		{"a word of 4", "abcd", 4},
		{"a word of 5 counts 4", "abcde", 4},
		{"a word of 32 counts 4", strings.Repeat("x", 32), 4},
		{"a run of 33 counts whole", strings.Repeat("x", 33), 33},
		{"words", "Translate this to French", 4 + 4 + 2 + 4},
		{"digits are of the word", "a1B2c3", 4},
		{"marks end a word", "don't", 3 + 1 + 1},
		{"_ ends a word", "file_read", 4 + 1 + 4},
		{"Han", "字", 3},         // 2.25, rounded up
		{"two Han", "字字", 5},    // 4.5
		{"four Han", "字字字字", 9}, // exact
		{"extension A", "㐀㐀㐀㐀", 9},
		{"compatibility", "豈豈豈豈", 9},
		{"hiragana", "ひらがな", 9},
		{"katakana with its long mark", "コードだ", 9},
		{"Hangul", "한국어로", 9},
		{"extension B is another character", "𠀀𠀀𠀀𠀀", 4},
		{"Hangul letters are other characters", "ㄱㄴㄷㄹ", 4},
		{"full-width letters are other characters", "ＡＢＣＤＥ", 5},
		{"CJK marks", "、。；！", 4},
		{"mixed", "用Go写API", 10}, // 4.5 and 5 of letters
		{"mixed runs do not join", "ab字cd", 7},
		{"emoji", "🙂", 1},
		{"emoji of several characters", "👩‍💻", 3}, // with the joiner
		{"a combining mark", "e\u0301", 2},
		{"an accented letter", "é", 1},
		{"accents end a run", "naïve", 2 + 1 + 2},
		{"Cyrillic", "привет", 6},
		{"no text", "\xff\xfe", 2},
	} {
		if got := Units(c.goal); got != c.want {
			t.Errorf("%s: %q has %d units, want %d", c.name, c.goal, got, c.want)
		}
	}
}

// TestPatterns is G27: goals that have a pattern, and goals that nearly do. A near one has no other pattern either.
func TestPatterns(t *testing.T) {
	gap := func(n int) string { return strings.Repeat("-", n) }
	for name, c := range map[string]struct{ has, near []string }{
		"first-then": {
			[]string{"First design the API schema, then implement the endpoints", "FIRST this THEN that", "first" + gap(3) + "then", "first" + gap(60) + "then", "first first" + gap(60) + "then"},
			[]string{"First of all, hello", "What happened then?", "then it was first", "first" + gap(2) + "then", "first" + gap(61) + "then", "first thing\nthen that", "firstly this then that", "first this, thence that", "first then", "first do the\u0301n", "éfirst this then that"},
		},
		"numbered-step": {
			[]string{"Step 1: set up the project", "phase2", "STAGE \n 3", "next_ step 4"},
			[]string{"one step at a time", "step one", "footstep 1", "steps 1", "the phase is 2", "step_1", "step ٣", "phase #2"},
		},
		"numbered-list": {
			[]string{"1. Design\n2. Build", "1) x", "Do:\n  12) x", "a\r3.", "x\u20284.", " \n\n\t5."},
			[]string{"x 1. y", "1 . x", "1: x", "a1.", "-1.", "\n1", "1x.", "2 + 2?"},
		},
		"collaborate": {
			[]string{"Collaborate with the writer", "keep collaborating on it", "collaborate  to win"},
			[]string{"What is collaboration with them", "deploy without collaborating", "he collaborated on it", "collaborate within", "collaborates with"},
		},
		"coordinate": {
			[]string{"Coordinate the team for release", "Coordinate across services", "coordinating between us", "coordinate the\nagents", "coordinate the worker"},
			[]string{"how Kubernetes pods coordinate state", "a team that coordinates releases", "coordinate the release", "coordinate the teams", "coordinate thework", "coordination with"},
		},
		"review-each-other": {
			[]string{"review each other's work", "Review each others code"},
			[]string{"review each file", "review the other", "preview each other", "reviewing each other"},
		},
		"work-together": {
			[]string{"Work together to build it", "work\n\ntogether"},
			[]string{"work to get her", "how parts work, together", "teamwork together", "work togetherness"},
		},
		"in-parallel": {
			[]string{"Run the linter in parallel", "do both concurrently", "At  the same time, sing"},
			[]string{"a parallel universe", "in parallelograms", "concurrent maps", "at the same place", "main parallel", "the same time"},
		},
		"build-and-more": {
			[]string{"Build the REST API and then write the tests", "create" + gap(5) + "and" + gap(5) + "test", "write" + gap(80) + "then" + gap(80) + "deploy", "Write a poem and another; then review it"},
			[]string{"Build the API and the tests", "build it and test it", "create" + gap(4) + "and" + gap(5) + "test", "create" + gap(5) + "and" + gap(4) + "test", "write" + gap(81) + "then" + gap(80) + "deploy",
				"Build the parser. It is slow and we must test it", "Build the parser and ship it. Then we may test", "Test the parser, and finally deploy it", "rebuild the parser and finally test it", "Pros and cons of TypeScript", "build the parser\nand finally test it"},
		},
		"zh-first-then": {
			[]string{"先收集需求，然后实现功能", "首先看，接着写", "先x再y", "先" + gap(60) + "再"},
			[]string{"先看", "然后呢", "先然后", "先" + gap(61) + "再", "先看\n再写", "再来，先走"},
		},
		"zh-numbered-step": {
			[]string{"第一步收集需求，第二步实现功能", "第1步x第2步", "第十二步：看第十三步"},
			[]string{"第一步收集需求", "第一步第二步", "第百步x第千步", "第步x第步", "第一步" + gap(81) + "第二步"},
		},
		"zh-verb-list": {
			[]string{"设计接口、实现服务", "测试、生成", "收集" + gap(40) + "、" + gap(40) + "生成"},
			[]string{"设计接口、文档", "数据、分析", "测试，生成", "收集资料、分析", "收集" + gap(41) + "、生成", "收集、" + gap(41) + "生成", "生成、测试"},
		},
		"zh-verb-and-more": {
			[]string{"分析销售数据并生成趋势报告", "测试它再部署", "开发" + gap(50) + "接着" + gap(50) + "部署"},
			[]string{"分析销售数据", "分析并生成", "并生成报告", "生成图并测试", "开发它并收集", "开发" + gap(51) + "接着部署"},
		},
		"cjk-enumeration": {
			[]string{"りんご、みかん、ぶどう、いちご、もも、なし", "사과、귤、포도、딸기、복숭아、배", "买 a果、b、x 花、草、木、水、火、"},
			[]string{"花、草、木、水、火", "apples, pears, plums, figs, dates, nuts", "花、草、木、\n水、火、土", "花、、草、木、水、火", "花、草、x木、水、火、土", "花、草、" + strings.Repeat("木", 41) + "、水、火、", "a、b、c、d、e、f、"},
		},
		"cjk-clauses": {
			[]string{"研究需求；分析方案；看结果", "ab；cd", strings.Repeat("字", 30) + "；好的"},
			[]string{"研究需求；", "；好的", "a；cd", "ab；c", "ab；\ncd", "ab；；cd", "ab; cd", "ab\n；cd"},
		},
		"ja-first-then": {
			[]string{"まず要件を設計し、次に実装する", "最初に集め、それから分析する", "まず見て続いて書く"},
			[]string{"まず一言で挨拶して", "次に何をすべきか教えて", "まず次に", "まず" + gap(81) + "次に"},
		},
		"ja-ordinals":      {[]string{"第一に要件を収集し、第二に実装する", "第1に x 第2に"}, []string{"第一に要件を収集する", "第一に第二に", "第一は x 第二は"}},
		"ja-numbered-step": {[]string{"ステップ1で準備し、ステップ 2で書く", "手順1で、手順2で"}, []string{"ステップ1で準備する", "ステップ一で、ステップ二で", "手順1手順2"}},
		"ko-first-then": {
			[]string{"먼저 요구사항을 수집하고, 그다음 구현한다", "먼저 모으고 그리고 나서 분석한다", "먼저 x 그 다음"},
			[]string{"먼저 무엇을 해야 하는지 알려 줘", "그다음 뭐야", "먼저그다음", "먼저 하고 그리고 끝"},
		},
		"ko-ordinals":      {[]string{"첫째 수집하고, 둘째 분석한다", "첫 번째로 모으고 두 번째로 구현한다"}, []string{"첫째 수집한다", "둘째, 첫째", "첫째둘째"}},
		"ko-numbered-step": {[]string{"1단계에서 준비하고 2단계에서 작성한다", "1 단계 x 2 단계"}, []string{"1단계에서 준비한다", "일단계 x 이단계", "1단계2단계"}},
		"circled-numbers":  {[]string{"① 收集资料 ② 看", "②x③", "①" + gap(100) + "⑩", "② a ②"}, []string{"① 收集资料", "② x ①", "①②", "①" + gap(101) + "②", "⑪ x ⑫", "① x\n② y"}},
	} {
		for _, goal := range c.has {
			if !names(goal)[name] {
				t.Errorf("%q does not have %s", goal, name)
			}
			if d := Classify(goal); d.Mode != Team || d.Pattern == "" || d.Match == "" {
				t.Errorf("%q: got %+v", goal, d)
			}
		}
		for _, goal := range c.near {
			if d := Classify(goal); d.Mode != Single || d.Pattern != "" {
				t.Errorf("%q, nearly %s: got %+v", goal, name, d)
			}
		}
	}
}

// TestMatch: the text that a decision names is the goal's own.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ goal, pattern, match string }{
		{"Please FIRST plan it, THEN build it", "first-then", "FIRST plan it, THEN"},
		{"İ first plan it, then", "first-then", "first plan it, then"}, // a letter whose small form is longer
		{"ok: work \n\t together!", "work-together", "work together"},
		{"我们首先看一看，然后写", "zh-first-then", "首先看一看，然后"},
		{"🙂🙂 ab；cd", "cjk-clauses", "🙂🙂 ab；cd"},
		{"x\n  10) y", "numbered-list", "10)"},
		{"买：花、草、木、水、火、土", "cjk-enumeration", "买：花、草、木、水、火、"},
		{"build " + strings.Repeat("a", 70) + " and " + strings.Repeat("b", 70) + " test", "build-and-more", "build " + strings.Repeat("a", 33) + "…" + strings.Repeat("b", 34) + " test"},
	} {
		d := Classify(c.goal)
		if d.Pattern != c.pattern || d.Match != c.match {
			t.Errorf("%q: got %s in %q, want %s in %q", c.goal, d.Pattern, d.Match, c.pattern, c.match)
		}
	}
}

// TestClassify is G25.
func TestClassify(t *testing.T) {
	simple := func(units int) string {
		return "the goal is " + strconv.Itoa(units) + " units long, at most 200, and has no sign of several parts"
	}
	for _, c := range []struct {
		name, goal string
		want       Decision
	}{
		{"nothing is simple", "", Decision{Mode: Single, Reasons: []string{simple(0)}}},
		{"short", "Say hello", Decision{Mode: Single, Units: 7, Reasons: []string{simple(7)}}},
		{"lone markers", "then and summarize", Decision{Mode: Single, Units: 11, Reasons: []string{simple(11)}}},
		{"200 x", strings.Repeat("x", 200), Decision{Mode: Single, Units: 200, Reasons: []string{simple(200)}}},
		{"201 x", strings.Repeat("x", 201), Decision{Mode: Team, Units: 201, Reasons: []string{"the goal is 201 units long, more than 200"}}},
		{"88 Han", strings.Repeat("字", 88), Decision{Mode: Single, Units: 198, Reasons: []string{simple(198)}}},
		{"89 Han", strings.Repeat("字", 89), Decision{Mode: Team, Units: 201, Reasons: []string{"the goal is 201 units long, more than 200"}}},
		{"a pattern", "run both in parallel", Decision{Mode: Team, Units: 13, Pattern: "in-parallel", Match: "in parallel", Reasons: []string{`the goal has several parts: in-parallel in "in parallel"`}}},
		{"long, with a pattern", strings.Repeat("x", 201) + " step 1", Decision{Mode: Team, Units: 206, Pattern: "numbered-step", Match: "step 1",
			Reasons: []string{"the goal is 206 units long, more than 200", `the goal has several parts: numbered-step in "step 1"`}}},
		{"the first pattern of the table", "work together concurrently", Decision{Mode: Team, Units: 12, Pattern: "work-together", Match: "work together",
			Reasons: []string{`the goal has several parts: work-together in "work together"`}}},
	} {
		if diff := cmp.Diff(c.want, Classify(c.goal)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestLanguages: the same goal gets the same answer in four languages.
func TestLanguages(t *testing.T) {
	for mode, goals := range map[string][]string{
		Single: {"Summarize this report in one paragraph", "用一段话总结这份报告", "この報告書を一段落で要約して", "이 보고서를 한 문단으로 요약해 줘"},
		Team:   {"First collect the requirements, then implement the feature", "先收集需求，然后实现功能", "まず要件を収集し、次に機能を実装する", "먼저 요구사항을 수집하고, 그다음 기능을 구현한다"},
	} {
		for _, goal := range goals {
			if d := Classify(goal); d.Mode != mode {
				t.Errorf("%q is for %s, want %s: %v", goal, d.Mode, mode, d.Reasons)
			}
		}
	}
}

// hostile are a mebibyte each, made so that what looks for a pattern finds a beginning everywhere and an end nowhere.
func hostile() map[string]string {
	fill := func(piece string) string { return strings.Repeat(piece, 1<<20/len(piece)) }
	return map[string]string{
		"openers": fill("first build 先设计"), "closers": fill("then test 然后"), "both, too near": fill("first then "), "spaces": fill(" "), "lines": fill("\n"), "step and spaces": "step" + fill(" "),
		"in the in": fill("in at the same "), "digits": fill("1"), "第": fill("第"), "numerals": "第" + fill("一"), "、": fill("、"), "items": fill("字、字、x"), "；": fill("；"), "a；": fill("；a"),
		"verbs": fill("build it and "), "zh verbs": fill("设计、"), "one word": fill("a"), "no text": fill("\xff"), "marks": fill("\u0301"), "단계": fill("1 단"), "item numbers": fill("\n1 "),
	}
}

// TestHostile: no text makes it hang; a quadratic search would take hours.
func TestHostile(t *testing.T) {
	for name, goal := range hostile() {
		if d := Classify(goal); len(d.Reasons) == 0 || utf8.RuneCountInString(d.Match) > maxShown {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range []string{"", "first plan it, then go", "先看，然后写", "a；b", "字、字、字、字、字、", "1.", "第一步x第二步", "①x②", "\xff", "e\u0301first abc then", "build the thing and then test it"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, goal string) {
		d := Classify(goal)
		if d.Units < 0 || d.Units > 3*utf8.RuneCountInString(goal) || len(d.Reasons) == 0 || (d.Pattern == "") != (d.Match == "") {
			t.Fatalf("%q: got %+v", goal, d)
		}
		if (d.Mode == Single) != (d.Units <= MaxSimpleUnits && d.Pattern == "") {
			t.Fatalf("%q: got %+v", goal, d)
		}
		// Another line takes nothing away.
		if more := Classify(goal + "\nx"); d.Mode == Team && more.Mode != Team {
			t.Errorf("%q is for a team, and with another line it is not", goal)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	all := hostile()
	for _, bb := range []struct{ name, goal string }{
		{"simple", "Explain DNS to a beginner using plain language and one analogy."},
		{"pattern", "First collect the requirements, then implement the feature"},
		{"chinese", "用一句话总结这份报告"},
		{"openers-1MiB", all["openers"]},
		{"verbs-1MiB", all["verbs"]},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Classify(bb.goal)
			}
		})
	}
}

// TestTable: a marker says something, a gap can be filled, names are said once.
func TestTable(t *testing.T) {
	var seen []string
	for _, p := range patterns {
		if len(p.markers) != len(p.gaps)+1 {
			t.Errorf("%s has %d markers and %d gaps", p.name, len(p.markers), len(p.gaps))
		}
		for _, g := range p.gaps {
			if g.least > g.most {
				t.Errorf("%s has the gap %v", p.name, g)
			}
		}
		for _, m := range p.markers {
			if len(m) == 0 || slices.ContainsFunc(m, func(a string) bool { return a != strings.ToLower(a) || strings.Trim(a, "<>_ ") == "" }) {
				t.Errorf("%s has the marker %q", p.name, m)
			}
		}
		seen = append(seen, p.name)
	}
	for _, s := range shapes {
		seen = append(seen, s.name)
	}
	slices.Sort(seen)
	if n := len(seen); len(slices.Compact(seen)) != n {
		t.Errorf("a name stands twice in %v", seen)
	}
}
