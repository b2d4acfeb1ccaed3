// Package schemas holds the JSON Schemas of every document, embedded, and checks values against them and against the
// schemas that tools and team files bring along.
//
// It is the sole importer of the schema compiler. No schema it compiles can open a file or an address. Start at [Check]
// for documents and at [Compile] for foreign schemas.
package schemas
