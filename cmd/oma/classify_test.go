package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadUntil(t *testing.T) {
	long := strings.Repeat("a", 3*maxCommandBytes)
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":              {"", nil},
		"lines":                {"a\nb\n", []string{"a", "b"}},
		"the last has no end":  {"a\nb", []string{"a", "b"}},
		"empty lines":          {"\n\na\n", []string{"", "", "a"}},
		"more than is judged":  {long + "\nb\n", []string{long[:maxCommandBytes+1], "b"}},
		"and it has no end":    {"b\n" + long, []string{"b", long[:maxCommandBytes+1]}},
		"as much as is judged": {long[:maxCommandBytes] + "\n", []string{long[:maxCommandBytes]}},
	} {
		t.Run(name, func(t *testing.T) {
			in := bufio.NewReaderSize(strings.NewReader(c.in), 32<<10)
			var got []string
			for {
				s, err := readUntil(in, '\n')
				if err == io.EOF && s == "" {
					break
				}
				if err != nil && err != io.EOF {
					t.Fatal(err)
				}
				got = append(got, s)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Another program can ask for one command after the other: each is answered before the next is waited for.
func TestClassifyAnswersAtOnce(t *testing.T) {
	asks, asked := io.Pipe()
	answers, answered := io.Pipe()
	var errs bytes.Buffer
	a := &app{stdin: asks, stdout: answered, stderr: &errs, lookup: func(string) (string, bool) { return "", false }}
	ended := make(chan int, 1)
	go func() {
		ended <- a.main(context.Background(), []string{"policy", "classify", "-", "-o", "json", "--fail-on", "high"})
		answered.Close()
	}()
	lines := bufio.NewReader(answers)
	for _, command := range []string{"ls", "sudo true"} {
		if _, err := io.WriteString(asked, command+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, `{"command":"`+command+`",`) {
			t.Fatalf("%q is answered with %q, %v", command, line, err)
		}
	}
	asked.Close()
	if code := <-ended; code != 8 || errs.Len() > 0 {
		t.Errorf("ended %d: %s", code, &errs)
	}
}
