// Package journal keeps runs: the records of each, who holds it, how it ended, and what people were asked and decided.
// It is one SQLite database in a state folder, shared by all processes of that folder, and a file for what a run has
// recorded since its records were last moved there. Start at [Open], then
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
// [Log.Flush]: the end of the process, for all records before it, from the moment it returns nil. They have then been
// handed to the operating system with one write to runs/ID/tail. After a loss of power the last of them may be gone,
// but never half of one, and never one before another.
//
// [Log.Sync]: the end of the machine. The records are then in the database, by one transaction that was flushed to disk
// (write-ahead log, synchronous=FULL). Call it after the record of asking and before every act that changes something
// outside the run: an act must not outlive the record that says it may have happened. It costs one transaction, and
// nothing if nothing was appended. The same transaction is made whenever a megabyte has come, and by SetStatus and
// Close. All that people and later processes act on, what Begin, Continue, Ask and Decide write, is flushed as well;
// Ask flushes no records. So all that is in the database is on disk. It keeps how many records of a run that is: if
// fewer are there, that is damage and not an end.
//
// Whoever reads a run sees both parts as one. Who goes on with a run moves its tail into the database first.
//
// # Damage
//
// Each record carries the digest of the chain up to it (canon.Chain, as in the records themselves), so [Store.Records]
// finds a changed, missing or moved record and says its number; those before it can still be read. Approvals and
// decisions carry a digest of their row, and a request is read only if hash and id follow from it. All show damage. None shows forgery: whoever can write the file can compute
// the digests again. What one can hold a forged decision against is its signature, which is for the caller to judge.
//
// In a tail the first record that does not fit counts as its end, as in the database's own write-ahead log: a loss of
// power looks no different. Nothing that was promised to survive one is in either.
// [Store.Continue] also refuses a tail that goes on from a later record than the database has: an older copy of one was
// put beside a newer one of the other.
//
// # Limits
//
// The folder must be on a local disk: the write-ahead log needs memory that all processes share. Systems without flock
// can read a store and hold no run.
package journal
