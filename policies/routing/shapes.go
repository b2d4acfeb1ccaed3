package routing

const (
	listItems   = 5  // items of an enumeration
	mostInItem  = 40 // characters of one
	leastClause = 2  // characters of a clause
	mostClause  = 80 // characters of a clause that are looked at
)

// numbered finds a line that begins with a number and . or ).
func numbered(text []rune) span {
	start := 0 // of the line, without its spaces
	for i := 0; i < len(text); i++ {
		switch {
		case endsLine(text[i]) || i == start && space(text[i]):
			start = i + 1
		case i == start && digit(text[i]):
			i = after(text, i, digit)
			if i < len(text) && (text[i] == '.' || text[i] == ')') {
				return span{start, i + 1}
			}
			i--
		}
	}
	return span{}
}

// enumeration finds items that each begin with a Chinese, Japanese or Korean character and end with 、.
func enumeration(text []rune) span {
	first, items := 0, 0 // where the run of items begins, and how many it has
	item := 0            // where the item begins
	for i, r := range text {
		if r == '\n' {
			items, item = 0, i+1
		}
		if r != '、' {
			continue
		}
		if items == 0 || i-item > mostInItem || i == item || !cjk(text[item]) {
			items, first = 0, itemStart(text, item, i)
		}
		if item = i + 1; first < i {
			items++
		}
		if items == listItems {
			return span{first, i + 1}
		}
	}
	return span{}
}

// itemStart gives where a first item that ends at end begins: at its first Chinese, Japanese or Korean character of those
// near enough, since a sentence may stand before it. None: end.
func itemStart(text []rune, from, end int) int {
	for i := max(from, end-mostInItem); i < end; i++ {
		if cjk(text[i]) {
			return i
		}
	}
	return end
}

// clauses finds two clauses of one line with ； between them.
func clauses(text []rune) span {
	for i, r := range text {
		if r != '；' {
			continue
		}
		start, end := i, i+1
		for start > 0 && i-start < mostClause && inClause(text[start-1]) {
			start--
		}
		for end < len(text) && end-i <= mostClause && inClause(text[end]) {
			end++
		}
		if i-start >= leastClause && end-i > leastClause {
			return span{start, end}
		}
	}
	return span{}
}

func inClause(r rune) bool { return r != '；' && r != '\n' }
