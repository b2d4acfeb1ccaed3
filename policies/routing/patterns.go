package routing

// A pattern is a sign that a goal has several parts: markers that follow each other, with so much text between them.
// One marker of a pattern alone is no sign.
type pattern struct {
	name    string
	markers [][]string // one after another; each is a list of alternatives
	gaps    []gap      // what stands between them, one fewer than markers
}

// A marker is text in lower case, with signs for what is not fixed:
//
//	<  a word begins here      >  a word ends here
//	#  a digit 0 to 9          %  a number, in digits or in Chinese numerals
//	_  any number of spaces; a space stands for one or more
//
// A gap is from least to most characters, none of which ends the line, or the sentence where it says so.
type gap struct {
	least, most int
	sentence    bool
}

// patterns are looked for in this order.
//
// Chinese verbs do not change their form, so a list of them finds them. Japanese and Korean verbs do, and a list would
// find few: there only what orders or lists the parts counts.
var patterns = []pattern{
	{"first-then", [][]string{{"<first>"}, {"<then>"}}, []gap{{3, 60, false}}},
	{"numbered-step", [][]string{{"<step_#", "<phase_#", "<stage_#"}}, nil},
	{"collaborate", [][]string{{
		"<collaborate with>", "<collaborate on>", "<collaborate to>",
		"<collaborating with>", "<collaborating on>", "<collaborating to>"}}, nil},
	{"coordinate", [][]string{{
		"<coordinate with>", "<coordinate on>", "<coordinate across>", "<coordinate between>", "<coordinate the team>", "<coordinate the agent>",
		"<coordinate the agents>", "<coordinate the worker>", "<coordinate the workers>", "<coordinate the effort>", "<coordinate the work>",
		"<coordinating with>", "<coordinating on>", "<coordinating across>", "<coordinating between>", "<coordinating the team>", "<coordinating the agent>",
		"<coordinating the agents>", "<coordinating the worker>", "<coordinating the workers>", "<coordinating the effort>", "<coordinating the work>"}}, nil},
	{"review-each-other", [][]string{{"<review each other"}}, nil},
	{"work-together", [][]string{{"<work together>"}}, nil},
	{"in-parallel", [][]string{{"<in parallel>", "<concurrently>", "<at the same time>"}}, nil},
	{"build-and-more", [][]string{
		{"<build>", "<create>", "<implement>", "<design>", "<write>", "<develop>"},
		{"<and>", "<then>"},
		{"<build>", "<create>", "<implement>", "<design>", "<write>", "<develop>", "<test>", "<review>", "<deploy>"},
	}, []gap{{5, 80, true}, {5, 80, true}}},

	{"zh-first-then", [][]string{{"首先", "先"}, {"然后", "接着", "再"}}, []gap{{1, 60, false}}},
	{"zh-numbered-step", [][]string{{"第%步"}, {"第%步"}}, []gap{{1, 80, false}}},
	{"zh-verb-list", [][]string{
		{"构建", "创建", "实现", "设计", "编写", "开发", "分析", "收集", "部署", "测试", "审查", "审核", "研究", "撰写"},
		{"、"},
		{"构建", "创建", "实现", "设计", "编写", "开发", "生成", "部署", "测试", "审查", "审核", "研究", "撰写"},
	}, []gap{{0, 40, false}, {0, 40, false}}},
	{"zh-verb-and-more", [][]string{
		{"构建", "创建", "实现", "设计", "编写", "开发", "分析", "收集", "部署", "测试", "审查", "审核", "研究", "撰写"},
		{"并", "然后", "再", "接着"},
		{"构建", "创建", "实现", "设计", "编写", "开发", "生成", "部署", "测试", "审查", "审核", "研究", "撰写"},
	}, []gap{{1, 50, false}, {0, 50, false}}},

	{"ja-first-then", [][]string{{"まず", "最初に"}, {"次に", "それから", "続いて"}}, []gap{{1, 80, false}}},
	{"ja-ordinals", [][]string{{"第%に"}, {"第%に"}}, []gap{{1, 80, false}}},
	{"ja-numbered-step", [][]string{{"ステップ_#", "手順_#"}, {"ステップ_#", "手順_#"}}, []gap{{1, 80, false}}},

	{"ko-first-then", [][]string{{"먼저"}, {"그_다음", "그리고_나서"}}, []gap{{1, 80, false}}},
	{"ko-ordinals", [][]string{{"첫째", "첫_번째"}, {"둘째", "두_번째"}}, []gap{{1, 80, false}}},
	{"ko-numbered-step", [][]string{{"#_단계"}, {"#_단계"}}, []gap{{1, 80, false}}},

	{"circled-numbers", [][]string{
		{"①", "②", "③", "④", "⑤", "⑥", "⑦", "⑧", "⑨", "⑩"},
		{"②", "③", "④", "⑤", "⑥", "⑦", "⑧", "⑨", "⑩"},
	}, []gap{{1, 100, false}}},
}

// shapes are signs that no marker has, looked for after the patterns.
var shapes = []struct {
	name string
	find func(text []rune) span
}{
	{"numbered-list", numbered},
	{"cjk-enumeration", enumeration},
	{"cjk-clauses", clauses},
}
