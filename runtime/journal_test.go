package runtime

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/open-multi-agent/oma/spec"
)

// Events are encoded by hand. Nothing but speed may come of that.
func TestEventsAreEncodedLikePackageJSONDoes(t *testing.T) {
	full := spec.Event{Seq: 12, At: 1_700_000_000_000, Kind: "k", ID: "t/1/model", TaskID: `a "b" \ <c>`, AgentName: "ä\u2028\x00", Digest: "sha256:0", Data: json.RawMessage(`{"a":[1]}`), Prev: "p"}
	for v, i := reflect.ValueOf(full), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	for _, e := range []spec.Event{full, {}, {Kind: "\xff"}} {
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendEvent(nil, &e); string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// memory is a journal of tests.
type memory struct{ records [][]byte }

func (m *memory) Append(record []byte) error {
	m.records = append(m.records, bytes.Clone(record))
	return nil
}

func (m *memory) Flush() error { return nil }

func (m *memory) Close() error { return nil }
