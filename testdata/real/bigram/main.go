// Command bigram writes a language model of a few hundred kilobytes, so that a real inference engine can be tested
// without weights from anywhere. It is a genuine llama-architecture GGUF file whose single layer does nothing: its
// embeddings are one-hot and its output matrix is the table of which token follows which in the replies below. The
// reply therefore depends on the last token of the prompt alone, and the Modelfile's template chooses that token.
//
//	go run ./testdata/real/bigram tiny.gguf
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// replies are what the model can say, token by token. The first token of each is the cue that starts it. A token may
// have one successor only, which is why the second call of <|two|> is spelt with tokens of its own.
var replies = [][]string{
	{"<|chat|>", "▁The", "▁review", "▁found", "▁no", "▁defects", ".", "<|end|>"},
	{"<|one|>", `{"name":`, `▁"get_weather",`, `▁"parameters":`, `▁{"city":`, `▁"Oslo"}}`, "<|end|>"},
	{"<|two|>", `{"name":▁"get_weather",▁"parameters":▁{"city":▁"Bergen"}}`, `▁{"name":▁"get_time",▁"parameters":▁{"zone":▁"CET"}}`, "<|end|>"},
	{"<|final|>", "▁Oslo", "▁has", "▁3", "▁degrees", "<|end|>"},
}

const (
	headSize = 32 // of an attention head; the width is a multiple of it
	ffSize   = 32
	follows  = 20 // the logit of the token that follows; every other has 0
)

// The kinds of tokens in a GGUF vocabulary.
const (
	normalToken, unknownToken, controlToken, byteToken = 1, 2, 3, 6
)

type vocabulary struct {
	tokens []string
	kinds  []int32
	index  map[string]int
}

func (v *vocabulary) add(token string, kind int32) {
	if _, ok := v.index[token]; ok {
		return
	}
	v.index[token] = len(v.tokens)
	v.tokens, v.kinds = append(v.tokens, token), append(v.kinds, kind)
}

func newVocabulary() *vocabulary {
	v := &vocabulary{index: map[string]int{}}
	v.add("<unk>", unknownToken)
	for _, t := range []string{"<s>", "</s>", "<|end|>"} {
		v.add(t, controlToken)
	}
	for b := range 256 { // any prompt can be spelt in bytes
		v.add(fmt.Sprintf("<0x%02X>", b), byteToken)
	}
	for _, reply := range replies {
		v.add(reply[0], controlToken)
		for _, t := range reply[1:] {
			v.add(t, normalToken)
		}
	}
	return v
}

type tensor struct {
	name string
	dims []uint64
	data []float32
}

// tensors gives the weights for a model of the given width.
func (v *vocabulary) tensors(width int) []tensor {
	n := len(v.tokens)
	embed, output := make([]float32, width*n), make([]float32, width*n)
	// The norm scales a one-hot vector to the square root of the width.
	logit := float32(follows / math.Sqrt(float64(width)))
	for i := range n {
		embed[i*width+i] = 1
	}
	for _, reply := range replies {
		for i := 1; i < len(reply); i++ {
			output[v.index[reply[i]]*width+v.index[reply[i-1]]] = logit
		}
	}
	w, f := uint64(width), uint64(ffSize)
	ones := func() []float32 {
		out := make([]float32, width)
		for i := range out {
			out[i] = 1
		}
		return out
	}
	zeros := func(name string, a, b uint64) tensor {
		return tensor{"blk.0." + name + ".weight", []uint64{a, b}, make([]float32, a*b)}
	}
	return []tensor{
		{"token_embd.weight", []uint64{w, uint64(n)}, embed},
		{"output.weight", []uint64{w, uint64(n)}, output},
		{"output_norm.weight", []uint64{w}, ones()},
		{"blk.0.attn_norm.weight", []uint64{w}, ones()},
		{"blk.0.ffn_norm.weight", []uint64{w}, ones()},
		zeros("attn_q", w, w), zeros("attn_k", w, w), zeros("attn_v", w, w), zeros("attn_output", w, w),
		zeros("ffn_gate", w, f), zeros("ffn_up", w, f), zeros("ffn_down", f, w),
	}
}

// file is a GGUF file in the making. Numbers are little-endian.
type file struct {
	meta  bytes.Buffer
	count uint64
}

// The types of values in GGUF metadata.
const (
	typeInt32, typeUint32, typeFloat32, typeBool, typeString, typeArray = 5, 4, 6, 7, 8, 9
)

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		_ = binary.Write(b, binary.LittleEndian, v) // a Buffer takes everything
	}
}

func (f *file) set(key string, kind uint32, value ...any) {
	put(&f.meta, key, kind)
	put(&f.meta, value...)
	f.count++
}

func (f *file) describe(v *vocabulary, width int) {
	heads := uint32(width / headSize)
	f.set("general.architecture", typeString, "llama")
	f.set("general.name", typeString, "bigram")
	f.set("general.file_type", typeUint32, uint32(0)) // all float32
	f.set("general.quantization_version", typeUint32, uint32(2))
	for _, kv := range []struct {
		key   string
		value uint32
	}{
		{"context_length", 4096}, {"embedding_length", uint32(width)}, {"block_count", 1}, {"feed_forward_length", ffSize},
		{"attention.head_count", heads}, {"attention.head_count_kv", heads}, {"rope.dimension_count", headSize},
		{"vocab_size", uint32(len(v.tokens))},
	} {
		f.set("llama."+kv.key, typeUint32, kv.value)
	}
	f.set("llama.attention.layer_norm_rms_epsilon", typeFloat32, float32(1e-9))
	n := uint64(len(v.tokens))
	f.set("tokenizer.ggml.model", typeString, "llama")
	f.set("tokenizer.ggml.tokens", typeArray, uint32(typeString), n)
	for _, t := range v.tokens {
		put(&f.meta, t)
	}
	f.set("tokenizer.ggml.scores", typeArray, uint32(typeFloat32), n, make([]float32, n))
	f.set("tokenizer.ggml.token_type", typeArray, uint32(typeInt32), n, v.kinds)
	f.set("tokenizer.ggml.unknown_token_id", typeUint32, uint32(v.index["<unk>"]))
	f.set("tokenizer.ggml.bos_token_id", typeUint32, uint32(v.index["<s>"]))
	f.set("tokenizer.ggml.eos_token_id", typeUint32, uint32(v.index["<|end|>"]))
	for _, key := range []string{"add_bos_token", "add_eos_token", "add_space_prefix"} {
		f.set("tokenizer.ggml."+key, typeBool, key == "add_bos_token")
	}
}

// align pads to the 32 bytes on which tensors begin.
func align(b *bytes.Buffer) { b.Write(make([]byte, -b.Len()&31)) }

func model() []byte {
	v := newVocabulary()
	width := (len(v.tokens) + headSize - 1) / headSize * headSize
	var f file
	f.describe(v, width)
	tensors := v.tensors(width)
	var directory, data, out bytes.Buffer
	for _, t := range tensors {
		put(&directory, t.name, uint32(len(t.dims)), t.dims, uint32(0), uint64(data.Len())) // type 0 is float32
		put(&data, t.data)
		align(&data)
	}
	out.WriteString("GGUF")
	put(&out, uint32(3), uint64(len(tensors)), f.count)
	out.Write(f.meta.Bytes())
	out.Write(directory.Bytes())
	align(&out)
	out.Write(data.Bytes())
	return out.Bytes()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bigram FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], model(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
