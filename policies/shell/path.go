package shell

import (
	"path"
	"strings"
)

// area is what a path to be written belongs to.
type area uint8

const (
	elsewhere area = iota
	harmless       // devices that keep nothing
	system         // the system's own directories
	startup        // keys, and files that shells and tools run by themselves
)

// placeOf gives the area of a path. If only the start of the path is known, it must reach into the area.
func placeOf(p string, known bool) area {
	if p == "" {
		return elsewhere
	}
	clean := p
	if strings.Contains(p, "..") || strings.Contains(p, "//") || strings.Contains(p, "/.") || strings.HasPrefix(p, "./") {
		clean = path.Clean(p)
		if !known && strings.HasSuffix(p, "/") && clean != "/" {
			clean += "/"
		}
	}
	if known && isHarmless(clean) {
		return harmless
	}
	for rest := clean; strings.HasPrefix(rest, "../"); { // any directory: think of the top
		rest = rest[len("../"):]
		clean = "/" + rest
	}
	switch {
	case strings.HasPrefix(clean, "/") && isSystem(clean, known):
		return system
	case isStartup(clean):
		return startup
	}
	return elsewhere
}

func isHarmless(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full":
		return true
	}
	fd, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && fd != "" && strings.Trim(fd, "0123456789") == ""
}

func isSystem(p string, known bool) bool {
	p = strings.TrimPrefix(p, "/private") // where macOS keeps etc and var
	first, _, more := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	if !more && !known {
		return false // the name may go on
	}
	switch strings.ToLower(first) { // case does not tell names apart everywhere
	case "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "library", "proc", "sbin", "sys", "system", "usr":
		return true
	}
	return strings.HasPrefix(p, "/var/spool/cron") || strings.HasPrefix(p, "/var/lib/dpkg/")
}

// isStartup looks for names below the home directory, and for those that matter in any directory.
func isStartup(p string) bool {
	rest, home := underHome(p)
	if !strings.HasPrefix(p, "/") {
		home = true // a relative path may start there
	}
	first, more, _ := strings.Cut(rest, "/")
	if home {
		switch first {
		case ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
			".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".netrc", ".pgpass", ".git-credentials", ".gitconfig", ".pam_environment",
			".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".rhosts", ".forward", ".aws", ".kube", ".docker", ".pypirc":
			return true
		case ".config":
			dir, _, _ := strings.Cut(more, "/")
			switch dir {
			case "autostart", "fish", "gh", "git", "systemd", "gcloud":
				return true
			}
		case "Library":
			return strings.HasPrefix(more, "LaunchAgents")
		}
	}
	return anywhere(p)
}

func anywhere(p string) bool {
	p = "/" + p + "/"
	for _, dir := range [...]string{"/.ssh/", "/.gnupg/", "/.git/hooks/", "/.git/config/", "/.git/info/attributes/"} {
		if strings.Contains(p, dir) {
			return true
		}
	}
	return false
}

// underHome gives a path from a home directory on.
func underHome(p string) (string, bool) {
	for _, top := range [...]string{"~/", "/root/"} {
		if rest, ok := strings.CutPrefix(p, top); ok {
			return rest, true
		}
	}
	for _, top := range [...]string{"/home/", "/Users/", "~"} {
		if rest, ok := strings.CutPrefix(p, top); ok {
			_, rest, ok = strings.Cut(rest, "/")
			return rest, ok
		}
	}
	return p, false
}
