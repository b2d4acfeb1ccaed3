// Package journal keeps runs: the records of each, who holds it, how it ended, and what people were asked and decided.
// It is one SQLite database in a state folder, shared by all processes of that folder. Start at [Open], then
// [Store.Begin] or [Store.Continue]; a [Log] is a runtime.Journal. It is the sole importer of the database driver.
//
// # What it refuses
//
// A record, a decision and what a run is (team, plan, author) never change: triggers of the database refuse
// it. Only [Store.Prune] removes, and only whole runs that nobody holds or waits for. A run has one holder. The hold is a
// lock of the operating system on runs/ID/lock, so it ends with the process, however that ends; what the file says of the
// holder is for messages alone. A database that is empty, cut short, damaged, newer than the program or not a store is
// an error that names the file, and the file stays as it was. Nothing is ever started anew in its place.
//
// # What survives
//
// Append: the end of the process, from the moment it returns nil. The record has then been handed to the operating
// system as one transaction (write-ahead log, synchronous=NORMAL), so after a loss of power the last records may be
// gone, but never half of one, and never one before another.
//
// [Log.Sync]: the end of the machine, for all records before it. Call it after the record of asking and before every
// act that changes something outside the run: an act must not outlive the record that says it may have happened. It
// costs one flush of the disk, and nothing if nothing was appended. Begin, Continue, SetStatus, Close, Ask and Decide
// flush too, because people and later processes act on them. The store keeps how many records were promised to be
// on disk: if fewer are there, that is damage and not an end.
//
// # Damage
//
// Each record carries the digest of the chain up to it (canon.Chain, as in the records themselves), so [Store.Records]
// finds a changed, missing or moved record and says its number; those before it can still be read. Approvals and
// decisions carry a digest of their row. Both show damage. Neither shows forgery: whoever can write the file can compute
// the digests again.
//
// # Limits
//
// The folder must be on a local disk: the write-ahead log needs memory that all processes share. Systems without flock
// can read a store and hold no run.
package journal
