// Package parts starts programs of others for tests that are built with the tag real. Where a program is absent the
// test is skipped, loudly, or fails if OMA_REAL_REQUIRED is 1.
package parts

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// root is the top of the repository, seen from a package two folders down.
var root = filepath.Join("..", "..")

// part gives the path of a program of others. Where it is absent the test is skipped, loudly, or fails if the parts are
// required.
func part(t testing.TB, path string) (dir, file string) {
	t.Helper()
	dir = os.Getenv("OMA_REAL_DIR")
	if dir == "" {
		dir = filepath.Join(root, ".real")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, path)
	if _, err := os.Stat(file); err == nil {
		return dir, file
	}
	const hint = "%s is absent; install it with: make tools"
	if os.Getenv("OMA_REAL_REQUIRED") == "1" {
		t.Fatalf(hint, file)
	}
	t.Skipf("NOT TESTED AGAINST THE REAL PART: "+hint, file)
	return "", ""
}

// start runs a server for one test and gives its address once it answers.
func start(t testing.TB, command func(port string) *exec.Cmd) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	var output bytes.Buffer
	cmd := command(port)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(3*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if t.Failed() {
			t.Logf("server said:\n%s", output.String())
		}
	})
	address := "http://127.0.0.1:" + port
	for range 200 {
		if resp, err := http.Get(address + "/v1/models"); err == nil {
			resp.Body.Close()
			return address + "/v1"
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not answer", cmd.Path)
	return ""
}

// Aimock starts the mock of many vendors' servers with a file of fixtures, named from the top of the repository. It
// gives the base URL.
func Aimock(t testing.TB, fixtures string) string {
	_, cli := part(t, "node_modules/@copilotkit/aimock/dist/cli.js")
	file, err := filepath.Abs(filepath.Join(root, fixtures))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(port string) *exec.Cmd {
		return exec.Command("node", cli, "-p", port, "-f", file, "--validate-on-load", "--strict")
	})
}

// Ollama starts a real inference engine with the tiny model the repository makes. It gives the base URL; the model is
// called tiny.
func Ollama(t testing.TB) string {
	part(t, ".model")
	dir, program := part(t, "bin/ollama")
	return start(t, func(port string) *exec.Cmd {
		cmd := exec.Command(program, "serve")
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"),
			"OLLAMA_HOST=127.0.0.1:" + port, "OLLAMA_MODELS=" + filepath.Join(dir, "models"),
		}
		return cmd
	})
}
