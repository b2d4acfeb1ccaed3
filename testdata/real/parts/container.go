package parts

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Engine is podman with a store of its own, in which there is one image: a static bash and busybox.
type Engine struct {
	Env   []string // in which oma finds podman, and no docker
	Image string   // by its digest

	t       testing.TB
	program string
}

// settings are tried in turn: the machine's own, and what podman needs where it may raise no limit and the control groups are
// of the first version.
var settings = []string{"", "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n[engine]\nruntime = \"runc\"\n"}

// Podman gives an engine. It comes in packages of the system, which make tools does not install: where one is absent or cannot
// run a container the test is skipped, loudly, whatever is required.
func Podman(t testing.TB) *Engine {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"podman", "bash-static", "busybox"} {
		file, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("NOT TESTED AGAINST A REAL ENGINE: %s is absent; on Debian: apt-get install podman runc bash-static busybox-static", name)
		}
		found[name] = file
	}
	dir, err := os.MkdirTemp("", "oma-podman-") // short: podman has sockets below it
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{t: t, program: found["podman"]}
	t.Cleanup(func() {
		e.podman(nil, "rm", "--all", "--force")
		e.podman(nil, "rmi", "--all", "--force")
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("podman's store is left: %v", err)
		}
	})
	write := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"podman", "newuidmap", "newgidmap"} { // the last two are for users that are not root
		if file, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	store := "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + dir + "/graph\"\nrunroot = \"" + dir + "/run\"\n"
	base := []string{"PATH=" + bin, "HOME=" + os.Getenv("HOME"), "XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR"), "CONTAINERS_STORAGE_CONF=" + write("storage.conf", store)}
	var said string
	for _, text := range settings {
		e.Env = base
		if text != "" {
			e.Env = append(e.Env, "CONTAINERS_CONF="+write("containers.conf", text))
		}
		if said, err = e.podman(shellImage(t, found), "import", "-"); err != nil {
			continue
		}
		lines := strings.Fields(said)
		e.Image = lines[len(lines)-1]
		if said, err = e.podman(nil, "run", "--rm", "--network", "none", "--entrypoint", "bash", e.Image, "-c", "true"); err == nil {
			return e
		}
	}
	t.Skipf("NOT TESTED AGAINST A REAL ENGINE: podman runs no container here: %s", said)
	return nil
}

// Containers gives the ids of all that are there, running or not.
func (e *Engine) Containers() string {
	e.t.Helper()
	out, err := e.podman(nil, "ps", "--all", "--quiet")
	if err != nil {
		e.t.Fatal(out, err)
	}
	return out
}

func (e *Engine) podman(input []byte, args ...string) (string, error) {
	cmd := exec.Command(e.program, append([]string{"--log-level", "error"}, args...)...)
	cmd.Env, cmd.Stdin = e.Env, bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// shellImage is a file system for podman import.
func shellImage(t testing.TB, programs map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, text []byte) {
		h.Size = int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin/", "etc/", "tmp/", "var/tmp/"} {
		add(tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o777}, nil)
	}
	for name, file := range map[string]string{"bin/bash": programs["bash-static"], "bin/busybox": programs["busybox"]} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		add(tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}, text)
	}
	for _, name := range []string{"cat", "env", "grep", "id", "ls", "mkdir", "mktemp", "mount", "rm", "setsid", "sh", "sleep", "touch"} {
		add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
