package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// exactKey is the member of _meta that carries the text of a result as the server wrote it.
const exactKey = "oma/exact"

// exact puts the text of a result into the result's own _meta. The SDK decodes schemas and values into Go's, which
// loses digits of numbers and the order of properties, and it refuses a result with a kind of content that it does not
// know. So what it is to decode of a result's content is taken out, and this package decodes the text. Messages that
// are no such result are given back as they are.
func exact(message []byte) []byte {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Result json.RawMessage `json:"result"`
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || m.ID == nil || m.Method != nil || json.Unmarshal(m.Result, &result) != nil || result == nil {
		return message
	}
	if result["capabilities"] != nil {
		return message // of the greeting: the SDK's own business
	}
	for _, key := range [...]string{"content", "structuredContent", "toolResult", "inputRequests"} {
		delete(result, key)
	}
	readable(result)
	delete(result, "_meta")
	text, err := json.Marshal(string(m.Result))
	if err != nil {
		return message
	}
	rest, err := json.Marshal(result)
	if err != nil {
		return message
	}
	out := fmt.Appendf(make([]byte, 0, len(text)+len(rest)+100), `{"jsonrpc":"2.0","id":%s,"result":{"_meta":{%q:%s}`, m.ID, exactKey, text)
	if len(result) > 0 {
		out = append(append(out, ','), rest[1:len(rest)-1]...)
	}
	return append(out, "}}"...)
}

// exactText gives the text back. Whoever put it there, it is what the server says of its own result.
func exactText(meta map[string]any) ([]byte, bool) {
	text, ok := meta[exactKey].(string)
	return []byte(text), ok
}

// readable takes tools out of a list that the SDK cannot decode: they must not cost the others.
func readable(result map[string]json.RawMessage) {
	tools, err := elements(result["tools"], maxTools)
	if err != nil {
		delete(result, "tools") // it is for this package to say what is wrong
		return
	}
	var good []json.RawMessage
	for _, t := range tools {
		if json.Unmarshal(t, new(sdk.Tool)) == nil {
			good = append(good, t)
		}
	}
	if list, err := json.Marshal(good); err == nil && len(good) < len(tools) {
		result["tools"] = list
	}
}

var errTooMany = errors.New("too many elements")

// elements gives those of a list. One that is too long is an error before it is read to its end: millions of elements
// of a letter each would take far more memory than their text. Nothing, and null, are a list of none.
func elements(list json.RawMessage, most int) ([]json.RawMessage, error) {
	if len(list) == 0 || string(list) == "null" {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(list))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, errors.New("no list")
	}
	var out []json.RawMessage
	for d.More() {
		var e json.RawMessage
		if err := d.Decode(&e); err != nil {
			return nil, err
		}
		if out = append(out, e); len(out) > most {
			return nil, errTooMany
		}
	}
	return out, nil
}
