package builtin

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A command does not outlive a program that was killed with no chance to end it. The program is this test itself, run
// once more with a folder to work in.
func TestBashDiesWithUs(t *testing.T) {
	const folder = "OMA_TEST_BASH_FOLDER"
	if dir := os.Getenv(folder); dir != "" {
		r := call(openWith(t, testOptions(dir)), Bash, in{"command": "echo $$ > writing; mv writing pid; while :; do sleep 1; done"})
		t.Fatal("the command ended:", r.Text)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t)
	cmd := exec.Command(program, "-test.run=^TestBashDiesWithUs$")
	cmd.Env = append(os.Environ(), folder+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !exists(dir + "/pid"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			cmd.Process.Kill()
			t.Fatal("bash did not start")
		}
	}
	text, err := os.ReadFile(dir + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !alive(pid) {
		t.Fatalf("bash has the number %q and is not there", text)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	waitGone(t, pid)
}
