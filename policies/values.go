package policies

import (
	"errors"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/open-multi-agent/oma/spec/canon"
)

// adapter makes CEL's values of decoded JSON. It stands before the registry, which would loop over a map in another
// order each time, and which Extend would copy for every tool.
type adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return ordered{types.NewStringInterfaceMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	}
	return a.Adapter.NativeToValue(v)
}

// ordered is a map that loops go over in the order of its keys: the same call gives the same decision, reason and record.
type ordered struct{ traits.Mapper }

func (m ordered) Iterator() traits.Iterator {
	keys, _ := m.Value().(map[string]any)
	sorted := make([]string, 0, len(keys))
	for k := range keys {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	return types.NewStringList(types.DefaultTypeAdapter, sorted).Iterator()
}

// earlierInput is the input of an earlier call. It is decoded when a rule first looks into it: 64 calls of 1 MiB are too
// much to decode for each call, and most rules ask for the tool first. What cannot be decoded panics with the reason,
// which CEL makes an error of the whole rule: no || may pass over a call that was not seen.
type earlierInput struct {
	text   []byte
	schema any // nil: of a tool the agent does not have
	left   *int
	value  traits.Mapper // nil: not decoded yet
}

var (
	errPast     = errors.New("an earlier call cannot be read")
	errPastSize = errors.New("the earlier calls it reads are too large")
)

func (e *earlierInput) decode() (traits.Mapper, error) {
	if e.value != nil {
		return e.value, nil
	}
	if *e.left -= len(e.text); *e.left < 0 {
		return nil, errPastSize
	}
	input := map[string]any{}
	if len(e.text) > 0 {
		var err error
		if input, err = canon.Arguments(string(e.text)); err != nil {
			return nil, errPast
		}
	}
	canon.Shape(e.schema, input)
	e.value, _ = adapter{types.DefaultTypeAdapter}.NativeToValue(input).(traits.Mapper)
	return e.value, nil
}

func (e *earlierInput) must() traits.Mapper {
	m, err := e.decode()
	if err != nil {
		panic(err)
	}
	return m
}

// The methods of a traits.Mapper.

func (e *earlierInput) ConvertToNative(t reflect.Type) (any, error) {
	return e.must().ConvertToNative(t)
}
func (e *earlierInput) ConvertToType(t ref.Type) ref.Val { return e.must().ConvertToType(t) }
func (e *earlierInput) Equal(other ref.Val) ref.Val      { return e.must().Equal(other) }
func (e *earlierInput) Type() ref.Type                   { return types.MapType }
func (e *earlierInput) Value() any                       { return e.must().Value() }
func (e *earlierInput) Contains(key ref.Val) ref.Val     { return e.must().Contains(key) }
func (e *earlierInput) Get(key ref.Val) ref.Val          { return e.must().Get(key) }
func (e *earlierInput) Iterator() traits.Iterator        { return e.must().Iterator() }
func (e *earlierInput) Size() ref.Val                    { return e.must().Size() }
func (e *earlierInput) Find(key ref.Val) (ref.Val, bool) { return e.must().Find(key) }
