package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// notRun is the exit code of a shell whose command could not be started.
const notRun = 127

// Helper is the program when it is started as the helper, and must be the first thing main does. mine is false where
// args, the program's own with its name, ask for something else. env is what the shell gets. It returns only when it could
// not become the shell: stderr has been told why, and code is what to exit with.
func Helper(args, env []string, stderr io.Writer) (code int, mine bool) {
	if len(args) < 3 || args[1] != helperWord {
		return 0, false
	}
	if err := become(args[2], args[3:], env); err != nil {
		fmt.Fprintf(stderr, "Not run: the sandbox could not be put up: %v.\n", err)
		return notRun, true
	}
	return 0, true
}

// become gives up all rights but some and turns into a program. Without a program, it has tried whether that works.
func become(text string, program, env []string) error {
	var r rights
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	runtime.LockOSThread() // rights are a thread's; the program that follows gets those of the thread that starts it
	ruleset, err := r.ruleset()
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if len(program) == 0 {
		return nil
	}
	return unix.Exec(program[0], program, env)
}

const (
	readRights = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir)
	// writeRights leave out the making of devices: by one, root would write the disk itself.
	writeRights = readRights | landlock.AccessFSSet(ll.AccessFSWriteFile|ll.AccessFSTruncate|ll.AccessFSRemoveDir|ll.AccessFSRemoveFile|
		ll.AccessFSMakeDir|ll.AccessFSMakeReg|ll.AccessFSMakeSock|ll.AccessFSMakeFifo|ll.AccessFSMakeSym|ll.AccessFSRefer)
	deviceRights = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate)
)

// versions are what each version of landlock can refuse. Versions 0 to 2 are never used.
var versions = [...]landlock.Config{3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6, 7: landlock.V7, 8: landlock.V8, 9: landlock.V9,
	10: landlock.V10, 11: landlock.V11}

// ruleset refuses all that the version can refuse, and then lets through what is meant to be.
func (r *rights) ruleset() (int, error) {
	if v := landlockVersion(); v < r.Version || r.Version < landlockFiles || r.Version >= len(versions) {
		return -1, fmt.Errorf("landlock has version %d here, and version %d was promised", v, r.Version)
	}
	config := versions[r.Version]
	if !r.NoNetwork {
		config.HandledAccessNet = 0
	}
	folders, err := openAll(r.Folders)
	if err != nil {
		return -1, err
	}
	fd, _, err := config.NewRulesetFD(
		landlock.PathAccess(readRights, "/"),
		landlock.PathAccess(writeRights, folders...),
		landlock.PathAccess(deviceRights, "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom").IgnoreIfMissing())
	return fd, err
}

// openAll opens folders for as long as the helper lives, and gives paths that lead to them and nowhere else. They have no
// links: one that stands there now was put there.
func openAll(folders []string) ([]string, error) {
	var out []string
	for _, path := range folders {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return nil, fmt.Errorf("folder %q: %w", path, err)
		}
		out = append(out, "/proc/self/fd/"+strconv.Itoa(fd))
	}
	return out, nil
}

// kept are the capabilities that the files of others need. Any other would lead root out: into the kernel, the disk or
// another process.
var kept = []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID}

// dropCapabilities leaves those that are kept, of the ones that there are. Since no new privileges come, none comes back.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for i := range data {
		var keep uint32
		for bit := range 32 {
			if slices.Contains(kept, 32*i+bit) {
				keep |= 1 << bit
			}
		}
		data[i].Permitted &= keep
		data[i].Effective &= keep
		data[i].Inheritable = 0
	}
	return unix.Capset(&header, &data[0])
}

// landlockVersion is the version of the kernel's interface as far as it is known here. 0: there is none.
func landlockVersion() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	const signalsFixed = 2
	if errata, err := ll.LandlockGetErrata(); v >= 6 && (err != nil || errata&signalsFixed == 0) {
		v = 5 // its bounds for signals stop a program's own threads
	}
	return min(v, len(versions)-1)
}

// Why tries the helper with the folders that there are: a filter of system calls may refuse what the kernel offers.
func (l *landlocked) Why(ctx context.Context) error {
	if err := tooOld(landlockVersion(), l.o.NoNetwork); err != nil {
		return err
	}
	if err := l.declared(); err != nil {
		return err
	}
	temp, err := l.temporary()
	if err != nil {
		return err
	}
	c, err := l.helper([]string{temp})
	if err != nil {
		return err
	}
	if _, err := probe(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("landlock cannot be used: %w", err), l.Close())
	}
	return nil
}
