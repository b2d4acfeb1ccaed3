package shell

import "strings"

// options is what safety depends on in how a program reads its options.
type options struct {
	values     string // short options with a value: the rest of the word, or else the next word
	optional   string // short options with a value only if it is the rest of the word
	longValues string // long options whose value is the next word unless they have a =; spaces around each
	risky      string // short options that end safety
	riskyLong  string // long ones; spaces around each
	exact      bool   // long options cannot be abbreviated
	first      bool   // there are no options after the first operand
}

// scanned is a command's arguments as the program reads them.
type scanned struct {
	shorts   string   // every short option
	longs    []string // every long option as written, without its value
	values   []value
	operands []word
	split    bool // some operand may be none or several
	risky    string
	unknown  string // a word that may be a risky option
}

// value is an option's value.
type value struct {
	option string
	word   word
}

// scan reads arguments. Whatever may be an option is looked at as one, also after -- where an option before it may have
// taken the -- as its value: rules that miss an option with a value hide nothing.
func (o options) scan(args []word) scanned {
	var s scanned
	ended, sure := false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		dash := !a.dynamic && len(a.text) > 1 && a.text[0] == '-'
		switch {
		case ended && (sure || !dash):
			s.operand(a)
		case ended:
			o.risk(&s, a.text)
			s.operand(a)
		case a.dynamic:
			o.dynamic(&s, a)
			ended = ended || o.first && !a.mayBeOption()
			sure = ended
		case a.text == "--":
			ended, sure = true, i == 0 || !strings.HasPrefix(args[i-1].text, "-") && !args[i-1].dynamic
		case !dash:
			s.operand(a)
			if o.first {
				ended, sure = true, true
			}
		default:
			if name, takes := o.option(&s, a.text); takes && i+1 < len(args) {
				if next := args[i+1]; next.mayBeOption() || !strings.HasPrefix(next.text, "-") || next.text == "-" {
					s.values = append(s.values, value{name, next})
					if next.dynamic && next.split && s.unknown == "" {
						s.unknown = next.text
					}
					i++
				}
			}
		}
	}
	return s
}

func (s *scanned) operand(a word) {
	s.operands = append(s.operands, a)
	s.split = s.split || a.dynamic && !a.home && (a.split || isPattern(a))
}

// isPattern says that a dynamic word may become several file names.
func isPattern(a word) bool { return strings.ContainsAny(a.text, "*?[") }

// option reads one literal option word, and says whether its value is the next word.
func (o options) option(s *scanned, text string) (name string, takesNext bool) {
	o.risk(s, text)
	if long, ok := strings.CutPrefix(text, "--"); ok {
		name, v, has := strings.Cut(long, "=")
		s.longs = append(s.longs, name)
		if has {
			s.values = append(s.values, value{name, word{text: v}})
		}
		return name, !has && o.in(o.longValues, name)
	}
	for i := 1; i < len(text); i++ {
		s.shorts += text[i : i+1]
		if strings.IndexByte(o.optional, text[i]) >= 0 {
			return "", false
		}
		if strings.IndexByte(o.values, text[i]) < 0 {
			continue
		}
		if rest := text[i+1:]; rest != "" {
			s.values = append(s.values, value{text[i : i+1], word{text: rest}})
			return "", false
		}
		return text[i : i+1], true
	}
	return "", false
}

// risk notes the first option that ends safety.
func (o options) risk(s *scanned, text string) {
	if s.risky != "" {
		return
	}
	if long, ok := strings.CutPrefix(text, "--"); ok {
		if name, _, _ := strings.Cut(long, "="); o.in(o.riskyLong, name) {
			s.risky = text
		}
		return
	}
	for i := 1; i < len(text); i++ {
		if strings.IndexByte(o.risky, text[i]) >= 0 {
			s.risky = text
			return
		}
		if strings.IndexByte(o.values, text[i]) >= 0 || strings.IndexByte(o.optional, text[i]) >= 0 {
			return
		}
	}
}

// dynamic reads a word that is not literal.
func (o options) dynamic(s *scanned, a word) {
	switch {
	case strings.HasPrefix(a.head, "--") && strings.Contains(a.head, "=") && !a.split:
		o.option(s, a.head)
	case !strings.HasPrefix(a.head, "--") && len(a.head) > 1 && a.head[0] == '-' && !a.split && o.valued(a.head):
		o.option(s, a.head)
	default:
		if a.mayBeOption() && s.unknown == "" {
			s.unknown = a.text
		}
		s.operand(a)
	}
}

// valued says that a cluster of short options ends in one with a value, which goes on unknown.
func (o options) valued(head string) bool {
	return strings.ContainsAny(head[1:], o.values) && o.values != ""
}

// in looks for a long option in a list. GNU programs take any start of a name for it.
func (o options) in(list, name string) bool {
	if name == "" || list == "" {
		return false
	}
	if o.exact {
		return strings.Contains(list, " "+name+" ")
	}
	return strings.Contains(list, " "+name)
}

// has says whether an option was given: a short one by its letter, or a long one by its name.
func (s *scanned) has(short, long string) bool {
	if short != "" && strings.ContainsAny(s.shorts, short) {
		return true
	}
	for _, l := range s.longs {
		if long != "" && l != "" && strings.HasPrefix(long, l) {
			return true
		}
	}
	return false
}
