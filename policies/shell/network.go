package shell

import "strings"

// talks says whether a command talks to the network.
func talks(c *call) bool {
	switch c.name {
	case "curl", "wget", "aria2c", "axel", "http", "https", "xh", "ssh", "scp", "sftp", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "lftp", "tftp", "ping",
		"dig", "nslookup", "host", "whois", "traceroute", "nmap", "apt", "apt-get", "dnf", "yum", "apk", "brew", "pacman", "zypper", "aws", "gcloud", "gsutil",
		"az", "gh", "glab", "kubectl", "helm", "terraform", "npx", "pipx", "mail", "sendmail", "rclone", "lynx", "w3m", "links", "yt-dlp", "psql", "mysql", "redis-cli":
		return true
	case "rsync":
		for _, a := range c.args() {
			if a.dynamic || strings.Contains(a.text, ":") {
				return true
			}
		}
		return false
	case "openssl":
		return c.sub("s_client", "s_server", "ocsp")
	case "git":
		sub, args := c.subcommand()
		switch sub {
		case "clone", "fetch", "pull", "push", "ls-remote", "submodule", "send-email", "svn", "archive", "lfs":
			return true
		case "remote":
			return c.has("update") || c.has("prune") || c.has("show") && !args[len(args)-1].literal("show")
		}
		return false
	case "npm", "pnpm", "yarn", "bun":
		return len(c.words) == 1 || c.sub("install", "i", "ci", "add", "update", "up", "upgrade", "publish", "unpublish", "audit", "outdated", "view", "info", "login", "dlx", "create",
			"exec", "x", "search")
	case "pip", "pip3", "uv", "poetry", "conda", "mamba", "gem", "bundle", "composer":
		return c.sub("install", "download", "search", "update", "upgrade", "publish", "push", "fetch", "add", "sync", "lock", "create", "pip", "require")
	case "go":
		return c.sub("get", "install", "mod", "work")
	case "python", "python3":
		return c.has("-m") && c.has("pip") && (c.has("install") || c.has("download"))
	case "twine", "vsce":
		return c.sub("upload", "publish", "unpublish", "login")
	case "cargo":
		return c.sub("install", "fetch", "publish", "update", "search", "add", "yank", "login")
	case "docker", "podman":
		return c.sub("pull", "push", "login", "build", "run", "search", "compose")
	}
	return false
}

// decodes says whether a command turns text into other text that nobody has read.
func decodes(c *call) bool {
	switch c.name {
	case "base64", "base32", "basenc", "xxd", "uudecode", "openssl", "gpg", "gunzip", "zcat", "bunzip2", "bzcat", "unxz", "xzcat", "zstdcat", "unzstd":
		return true
	case "gzip", "bzip2", "xz", "zstd":
		for _, a := range c.args() {
			if a.dynamic || strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "d") {
				return true
			}
		}
	}
	return false
}

// sub says that the first operand is one of some words.
func (c *call) sub(names ...string) bool {
	for _, a := range c.args() {
		if !strings.HasPrefix(a.text, "-") {
			return contains(names, a.text)
		}
	}
	return false
}

// has says that some argument is exactly s.
func (c *call) has(s string) bool {
	for _, a := range c.args() {
		if a.literal(s) {
			return true
		}
	}
	return false
}

// publish judges package managers: what they publish cannot be taken back.
func (c *call) publish() {
	option := false // the word before may take this one as its value
	for _, a := range c.args() {
		if strings.HasPrefix(a.text, "-") && !a.dynamic {
			option = strings.HasPrefix(a.text, "--") && !strings.Contains(a.text, "=")
			continue
		}
		switch {
		case a.literal("publish"), a.literal("unpublish"), c.name == "gem" && a.literal("push"), c.name == "twine" && a.literal("upload"):
			c.flag(High, "publishes", quote(c.name+" "+a.text)+" publishes a package")
			return
		}
		if !option && !strings.HasPrefix(a.text, "+") { // cargo +nightly
			break
		}
		option = false
	}
	c.unknown()
}
