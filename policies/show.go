package policies

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/open-multi-agent/oma/spec/canon"
)

// maxValueRunes bounds a value that is shown of what a rule read.
const maxValueRunes = 256

// show gives a value as JSON, as far as it is shown, without secrets. An error is that of a field which is not there, in
// the words a denial uses.
func (v *variables) show(val ref.Val) string {
	if err, failed := val.(*types.Err); failed {
		return "(" + cause(err) + ")"
	}
	s := shower{mask: v.masked}
	s.value(val)
	return clip(s.String(), maxValueRunes)
}

// shower writes JSON until there is enough of it. Each text is masked as it is and whole: inside JSON it may be escaped,
// and a secret that was cut is found by nobody.
type shower struct {
	strings.Builder
	mask func(string) string
}

func (s *shower) full() bool { return s.Len() > utf8.UTFMax*maxValueRunes }

func (s *shower) value(v any) {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			s.WriteString("null")
			return
		}
		s.value(v.GetValue())
	case *earlierInput:
		if m, err := v.decode(); err != nil {
			s.WriteString("(" + err.Error() + ")")
		} else {
			s.value(m.Value())
		}
	case types.Null:
		s.WriteString("null")
	case string:
		s.text(v)
	case []any:
		list(s, v)
	case []ref.Val:
		list(s, v)
	case map[string]any:
		s.members(v)
	case ref.Val:
		s.value(v.Value())
	default:
		s.scalar(v)
	}
}

func list[V any](s *shower, all []V) {
	s.WriteByte('[')
	for i, x := range all {
		if s.full() {
			return
		}
		if i > 0 {
			s.WriteByte(',')
		}
		s.value(x)
	}
	s.WriteByte(']')
}

func (s *shower) members(m map[string]any) {
	s.WriteByte('{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if s.full() {
			return
		}
		if i > 0 {
			s.WriteByte(',')
		}
		s.text(k)
		s.WriteByte(':')
		s.value(m[k])
	}
	s.WriteByte('}')
}

func (s *shower) text(t string) { s.scalar(clip(s.mask(t), maxValueRunes)) }

func (s *shower) scalar(v any) {
	b, err := canon.Bytes(v)
	if err != nil {
		s.WriteString("(no JSON)")
		return
	}
	s.Write(b)
}
