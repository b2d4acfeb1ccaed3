package scripted

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/open-multi-agent/oma/spec"
	"github.com/open-multi-agent/oma/spec/canon"
	"github.com/open-multi-agent/oma/spec/redact"
)

// matchExact is the value of Cassette.Match under which a digest covers all texts.
const matchExact = "exact"

// parts names the quarters of a digest.
var parts = [...]string{"agent, task or model", "system prompt", "tools", "messages"}

// partDigits is the length of a quarter in hexadecimal digits: 64 bits, since a recording is no proof against anybody,
// and only a change must be seen.
const partDigits = 16

// RequestDigest gives the digest of a request as a cassette holds it; the package comment says what it covers under
// match. It is made of four truncated SHA-256 sums, one for each part of a request, so that a refusal can say which part
// changed. It is linear in the size of the request.
func RequestDigest(req *spec.ModelRequest, match string) string {
	exact := match == matchExact
	var d digester
	d.start()
	d.add(req.AgentName, req.TaskTitle, req.Model)
	if exact && req.Temperature != nil {
		d.add(fmt.Sprint(*req.Temperature))
	}
	d.start()
	d.add(masked(req.System))
	d.start()
	for _, t := range req.Tools {
		d.add(t.Name, canonical(string(t.InputSchema)))
		if exact {
			d.add(t.Description)
		}
	}
	d.start()
	for i := range req.Messages {
		d.message(&req.Messages[i], i == 0, exact)
	}
	return d.sum()
}

// shownDigits is how much of a digest people are shown: enough to tell two apart, and to find it in the cassette.
const shownDigits = 12

// changed names the parts in which two digests differ, and shows of both where the first of these begins. A text that is
// no digest differs in all parts and is shown as it is.
func changed(want, found string) (names, shownWant, shownFound string) {
	_, w, _ := strings.Cut(want, ":")
	_, f, _ := strings.Cut(found, ":")
	var differ []string
	for i, name := range parts {
		start, end := i*partDigits, (i+1)*partDigits
		if len(w) >= end && len(f) >= end && w[start:end] == f[start:end] {
			continue
		}
		if differ = append(differ, name); len(differ) == 1 {
			shownWant, shownFound = from(want, w, start), from(found, f, start)
		}
	}
	return strings.Join(differ, " and "), shownWant, shownFound
}

func from(whole, digits string, start int) string {
	if len(digits) < start+shownDigits {
		return whole
	}
	return digits[start:start+shownDigits] + "…"
}

// digester hashes the parts of a request one after the other.
type digester struct {
	h    hash.Hash
	done []byte
}

func (d *digester) start() {
	if d.h == nil {
		d.h = sha256.New()
		return
	}
	d.done = append(d.done, d.h.Sum(nil)[:partDigits/2]...)
	d.h.Reset()
}

// add hashes texts with their lengths, so that no two lists of texts are the same bytes.
func (d *digester) add(texts ...string) {
	for _, s := range texts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		d.h.Write(n[:])
		d.h.Write([]byte(s))
	}
}

func (d *digester) message(m *spec.Message, first, exact bool) {
	d.add(m.Role, m.ToolCallID, m.ToolName)
	for _, c := range m.ToolCalls {
		d.add("call", c.ID, c.Name, canonical(c.Arguments))
	}
	if exact || first && m.Role == spec.RoleUser {
		d.add("text", masked(m.Text))
	}
	if exact {
		d.add(masked(m.Reasoning), fmt.Sprint(m.IsError))
	}
	for _, a := range m.Attachments {
		if d.add("attachment", a.Type, a.MediaType); exact {
			d.add(masked(a.Filename), masked(a.URL), a.Digest)
		}
	}
}

func (d *digester) sum() string {
	d.start()
	return "sha256:" + hex.EncodeToString(d.done)
}

func masked(s string) string { return (*redact.Redactor)(nil).Text(s) }

// canonical gives the one encoding of a JSON object, so that a cassette may be written in YAML; other text as it is.
func canonical(text string) string {
	v, err := canon.Arguments(text)
	if err != nil {
		return text
	}
	b, err := canon.Bytes(v)
	if err != nil {
		return text
	}
	return string(b)
}
