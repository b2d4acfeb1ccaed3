// Package sandbox says where the commands of bash run and what is held against them there. It turns a command into the
// one that is really started, and tells what that is worth: [Executor.Held] names each promise with how far it is kept
// and by what, and [Executor.Why] says why this machine cannot keep them.
//
// Four kinds exist. local holds nothing. landlock lets the kernel refuse writes: the program starts itself once more as a
// small helper ([Helper]) that gives up its rights for good and then becomes the shell. bubblewrap gives a command
// namespaces of its own, where everything but the declared folders is mounted read-only and no other process exists.
// container runs it in an image, by docker or podman.
//
// The package grants nothing and judges no command. It never falls back to less than was asked for: where a wall cannot
// be put up, the command does not run; whoever would rather run it without says so by [Unheld]. It pulls no image, reads
// no environment but by [Options].Env, and starts what runs by package process alone, which ends it. landlock and
// bubblewrap need Linux; container also works on macOS.
//
// What is held is held against commands, not against the root of the machine, the kernel's own faults or a service that
// does as a command asks. Start at [New].
package sandbox
