package policies

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// provider answers the checker's questions about objects that JSON Schemas describe. It is written to while rules are
// compiled, by one goroutine, and only read afterwards.
//
// It embeds the registry itself: several of CEL's options want more than the Provider interface of what they are given.
type provider struct {
	*types.Registry
	objects map[string]*shape
	// missed has the object that was last asked in vain for a field, by the field's name. The checker's errors do not
	// say it.
	missed map[string]*shape
}

// object declares an object type, or gives the one of that name.
func (p *provider) object(name string, rest *shape) *shape {
	if s, ok := p.objects[name]; ok {
		s.elem = rest
		return s
	}
	s := &shape{typ: types.NewObjectType(name), elem: rest, fields: map[string]*shape{}, always: map[string]bool{}}
	p.objects[name] = s
	return s
}

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if s, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(s.typ), true
	}
	return p.Registry.FindStructType(name)
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if s, ok := p.objects[name]; ok {
		return s.names, true
	}
	return p.Registry.FindStructFieldNames(name)
}

func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s, ok := p.objects[name]
	if !ok {
		return p.Registry.FindStructFieldType(name, field)
	}
	if f, ok := s.fields[field]; ok {
		return member(field, f.typ), true
	}
	if s.elem != nil {
		return member(field, s.elem.typ), true
	}
	if p.missed != nil {
		p.missed[field] = s
	}
	return nil, false
}

func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := p.objects[name]; ok {
		return types.NewErr("%s cannot be constructed", name)
	}
	return p.Registry.NewValue(name, fields)
}

// missingField is the error of reading a field that the value does not have. The name comes from the rule's text,
// never from the call.
type missingField string

func (f missingField) Error() string { return fmt.Sprintf("no such key: %s", string(f)) }

var errNotAnObject = errors.New("no such overload")

func member(name string, t *types.Type) *types.FieldType {
	return &types.FieldType{
		Type: t,
		IsSet: func(v any) bool {
			m, _ := v.(map[string]any)
			_, ok := m[name]
			return ok
		},
		GetFrom: func(v any) (any, error) {
			m, ok := v.(map[string]any)
			if !ok {
				return nil, errNotAnObject
			}
			got, ok := m[name]
			if !ok {
				return nil, missingField(name)
			}
			return got, nil
		},
	}
}
