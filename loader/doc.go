// Package loader reads documents: bytes, strict YAML, the kind's schema, then the struct in package spec. It also turns
// the path of a diagnostic into a file, a line, a column and the lines a person is shown.
//
// It is the sole importer of the YAML library. Nothing in a file is ever guessed: an unknown or repeated key, a key
// without a value, a YAML tag, a number that YAML versions read in different ways and a second document are errors,
// and all errors of a file are reported together. It refuses to read anything but regular files of at most 4 MiB,
// never opens a secret and does not know what names in a document refer to: that is the compiler's work.
//
// Start at [Team]; [Sources.Place] and [Render] serve whoever finds problems later.
package loader
