package spec

// File is a file as it was read: once.
type File struct {
	Path   string `json:"path"`   // as the document names it, with /
	Digest string `json:"digest"` // of the text with line ends normalised
	Text   string `json:"-"`
}

// Bundle is a team with everything it names, read once and hashed as read.
type Bundle struct {
	Team      *Team
	TeamFile  File
	Prompts   map[string]File         // by path as written
	Policies  map[string]PolicyFile   // by path as written in gates.files
	Packs     map[string]PolicyFile   // by name, as the program carries them
	Cassettes map[string]CassetteFile // by path as written in a provider
	// Programs are what the team's own tools, servers and external agents are made of, by cleaned path, without their texts.
	Programs map[string]File
	// Lock pins the tools of the team's MCP servers. nil: there is none, or none is needed.
	Lock *LockFile
	// Above are the policies given from outside the team file, in the order given.
	Above []PolicyFile
}

// PolicyFile is a rule file that was read.
type PolicyFile struct {
	File
	Policy *Policy
}

// CassetteFile is a cassette that was read.
type CassetteFile struct {
	File
	Cassette *Cassette
}

// LockFile is a lock that was read.
type LockFile struct {
	File
	Lock *Lock
}
