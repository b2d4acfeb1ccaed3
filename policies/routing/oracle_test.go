package routing

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// oracle has every pattern as an expression, for whoever reads those sooner. Letters beyond ASCII are where the two
// differ: to an expression they end a word.
func oracle() map[string]*regexp.Regexp {
	build, more := `(?:build|create|implement|design|write|develop)`, `(?:build|create|implement|design|write|develop|test|review|deploy)`
	zh, zhMore := `(?:构建|创建|实现|设计|编写|开发|分析|收集|部署|测试|审查|审核|研究|撰写)`, `(?:构建|创建|实现|设计|编写|开发|生成|部署|测试|审查|审核|研究|撰写)`
	all := map[string]*regexp.Regexp{}
	for name, expr := range map[string]string{
		"first-then":        `\bfirst\b.{3,60}\bthen\b`,
		"numbered-step":     `\b(?:step|phase|stage)\s*\d`,
		"collaborate":       `\bcollaborat(?:e|ing)\s+(?:with|on|to)\b`,
		"coordinate":        `\bcoordinat(?:e|ing)\s+(?:with|on|across|between|the\s+(?:team|agents?|workers?|effort|work))\b`,
		"review-each-other": `\breview\s+each\s+other`,
		"work-together":     `\bwork\s+together\b`,
		"in-parallel":       `\bin\s+parallel\b|\bconcurrently\b|\bat\s+the\s+same\s+time\b`,
		"build-and-more":    `\b` + build + `\b[^.!?\n]{5,80}\b(?:and|then)\b[^.!?\n]{5,80}\b` + more + `\b`,
		"zh-first-then":     `(?:首先|先).{1,60}(?:然后|接着|再)`,
		"zh-numbered-step":  `第[一二三四五六七八九十\d]+步.{1,80}第[一二三四五六七八九十\d]+步`,
		"zh-verb-list":      zh + `.{0,40}、.{0,40}` + zhMore,
		"zh-verb-and-more":  zh + `.{1,50}(?:并|然后|再|接着).{0,50}` + zhMore,
		"ja-first-then":     `(?:まず|最初に).{1,80}(?:次に|それから|続いて)`,
		"ja-ordinals":       `第[一二三四五六七八九十\d]+に.{1,80}第[一二三四五六七八九十\d]+に`,
		"ja-numbered-step":  `(?:ステップ|手順)\s*\d.{1,80}(?:ステップ|手順)\s*\d`,
		"ko-first-then":     `먼저.{1,80}(?:그\s*다음|그리고\s*나서)`,
		"ko-ordinals":       `(?:첫째|첫\s*번째).{1,80}(?:둘째|두\s*번째)`,
		"ko-numbered-step":  `\d\s*단계.{1,80}\d\s*단계`,
		"circled-numbers":   `[①②③④⑤⑥⑦⑧⑨⑩].{1,100}[②③④⑤⑥⑦⑧⑨⑩]`,
		"numbered-list":     `(?:^|[\n\r\x{2028}\x{2029}])\s*\d+[.)]`,
		"cjk-enumeration":   `(?:[㐀-䶿一-鿿豈-﫿぀-ヿ가-힯][^、\n]{0,39}、){5}`,
		"cjk-clauses":       `[^；\n]{2,80}；[^；\n]{2,80}`,
	} {
		expr = strings.ReplaceAll(expr, `.{`, `[^\n\r\x{2028}\x{2029}]{`)
		expr = strings.ReplaceAll(expr, `\s`, `[\s\v\pZ\x{85}\x{feff}]`)
		all[name] = regexp.MustCompile(`(?i)` + expr)
	}
	return all
}

// names are the patterns and shapes a goal has, all of them.
func names(goal string) map[string]bool {
	text := []rune(strings.ToLower(goal))
	has := map[string]bool{}
	for i, places := range markers(text) {
		has[patterns[i].name] = !chain(text, places, patterns[i].gaps).none()
	}
	for _, s := range shapes {
		has[s.name] = !s.find(text).none()
	}
	return has
}

// TestOracle puts goals together from pieces of markers, and wants of each what the expressions say.
func TestOracle(t *testing.T) {
	oracle := oracle()
	if len(oracle) != len(patterns)+len(shapes) {
		t.Fatalf("the oracle knows %d patterns, of %d", len(oracle), len(patterns)+len(shapes))
	}
	fillers := []string{" ", " ", "\n", "\r", "\u2028", "\u3000", "\t", "x", "_", ".", "!", "7", "12", ")", "abc ", " word ", strings.Repeat("y", 37), strings.Repeat("字", 18),
		"字", "か", "가", "、", "；", "一", "十", "第", "步", "に", "agent", "s", "other", "THEN "}
	// Of each pattern its markers in their order; of shapes what they are made of.
	sets := [][][]string{{{"1", ".", ")"}, {".", "\n", " "}}, {{"；", "字", "x"}, {"；", "\n", "；x"}}, {{"字、", "か、", "가", "、"}, {"字、か、字、", strings.Repeat("字", 38)}}}
	for _, p := range patterns {
		sets = append(sets, p.markers)
	}
	plain := strings.NewReplacer("<", "", ">", "", "_", "", "#", "3", "%", "二")
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return plain.Replace(from[random.IntN(len(from))]) }
	found := map[string]int{}
	for i := range 150 * len(sets) {
		set := sets[i%len(sets)]
		few := []string{fillers[random.IntN(len(fillers))], fillers[random.IntN(len(fillers))]}
		var b strings.Builder
		for k := range random.IntN(8) + len(set) {
			b.WriteString(pick(set[k%len(set)]))
			for range random.IntN(4) {
				b.WriteString(few[random.IntN(len(few))])
			}
		}
		goal := b.String()
		has := names(goal)
		for name, expr := range oracle {
			if want := expr.MatchString(goal); has[name] != want {
				t.Errorf("%q: %s is %v, want %v", goal, name, has[name], want)
			}
			if has[name] {
				found[name]++
			}
		}
	}
	for name := range oracle {
		if found[name] < 10 || found[name] > 150*len(sets)/2 {
			t.Errorf("%d goals had %s: the pieces do not try it", found[name], name)
		}
	}
}
