package journal

// applicationID marks the file as a store of this program: "oma" and a zero.
const applicationID = 0x6f6d6100

// migrations make the schema, each from the version before it. The version of a store is how many of them it has had.
// Those that were released are never changed.
var migrations = []string{firstSchema, attachmentSchema}

// What tools attached to their results, by run: bytes that no record holds. They go with their run.
const attachmentSchema = `
CREATE TABLE attachments (
	run    INTEGER NOT NULL REFERENCES runs,
	digest TEXT NOT NULL, -- as records name it
	blob   INTEGER NOT NULL REFERENCES blobs,
	PRIMARY KEY (run, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_blob ON attachments (blob);

CREATE TRIGGER attachments_fixed BEFORE UPDATE ON attachments
BEGIN SELECT RAISE(ABORT, 'an attachment cannot be changed'); END;
CREATE TRIGGER attachments_kept BEFORE DELETE ON attachments WHEN OLD.run NOT IN pruning
BEGIN SELECT RAISE(ABORT, 'an attachment is removed by pruning only'); END;
CREATE TRIGGER blobs_attached BEFORE DELETE ON blobs WHEN EXISTS (SELECT 1 FROM attachments WHERE blob = OLD.num)
BEGIN SELECT RAISE(ABORT, 'an attachment refers to this blob'); END;
`

// Records that are stored together are one row, since most of what storing costs is paid by the row. A row's number is its
// run's number and that of its last record: run<<32 | seq. So the records of a run lie together in one tree, in order,
// without an index beside it.
const firstSchema = `
CREATE TABLE runs (
	num         INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so that nothing of a pruned run can come back
	id          TEXT NOT NULL UNIQUE,
	team        TEXT NOT NULL,
	plan        TEXT NOT NULL,
	core        TEXT NOT NULL,
	author      TEXT NOT NULL,
	created_at  INTEGER NOT NULL, -- times are milliseconds since 1970, 0: none
	sum         TEXT NOT NULL,    -- of all from id on
	ended_at    INTEGER NOT NULL DEFAULT 0,
	status      TEXT NOT NULL CHECK (status IN ('running', 'suspended', 'interrupted', 'ended')),
	exit_code   INTEGER NOT NULL DEFAULT 0,
	attempt     INTEGER NOT NULL DEFAULT 1,
	durable     INTEGER NOT NULL DEFAULT 0 -- how many records were flushed to disk
) STRICT;

CREATE TABLE blobs (
	num    INTEGER PRIMARY KEY,
	digest TEXT NOT NULL UNIQUE,
	body   BLOB NOT NULL
) STRICT;

CREATE TABLE records (
	num   INTEGER PRIMARY KEY,
	body  BLOB NOT NULL,              -- the records with line ends between them, or what is left of one without its blob
	blob  INTEGER REFERENCES blobs,   -- NULL: none
	cut   INTEGER NOT NULL DEFAULT 0, -- where in body the blob goes
	heads BLOB NOT NULL               -- the chain's digest with each record, 32 bytes each: so many records there are
) STRICT;
CREATE INDEX records_blob ON records (blob) WHERE blob IS NOT NULL;

CREATE TABLE approvals (
	num          INTEGER PRIMARY KEY,
	id           TEXT NOT NULL UNIQUE,
	run          INTEGER NOT NULL REFERENCES runs,
	scope        TEXT NOT NULL,
	boundary     TEXT NOT NULL,
	request_hash TEXT NOT NULL,
	content      BLOB NOT NULL,
	reason       TEXT NOT NULL,
	requested_at INTEGER NOT NULL,
	expires      INTEGER NOT NULL,
	sum          TEXT NOT NULL -- of all of the above
) STRICT;
CREATE INDEX approvals_run ON approvals (run);

CREATE TABLE decisions (
	num        INTEGER PRIMARY KEY,
	approval   TEXT NOT NULL REFERENCES approvals (id),
	reviewer   TEXT NOT NULL,
	verdict    TEXT NOT NULL,
	reason     TEXT NOT NULL,
	signature  BLOB NOT NULL,
	decided_at INTEGER NOT NULL,
	sum        TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_approval ON decisions (approval);

-- The runs that the transaction in progress removes.
CREATE TABLE pruning (run INTEGER PRIMARY KEY) STRICT;

CREATE TRIGGER runs_fixed BEFORE UPDATE OF num, id, team, plan, core, author, created_at, sum ON runs
BEGIN SELECT RAISE(ABORT, 'what a run is cannot be changed'); END;
CREATE TRIGGER runs_kept BEFORE DELETE ON runs WHEN OLD.num NOT IN pruning
BEGIN SELECT RAISE(ABORT, 'a run is removed by pruning only'); END;

CREATE TRIGGER records_next BEFORE INSERT ON records
WHEN length(NEW.heads) = 0 OR length(NEW.heads) % 32 > 0 OR NEW.num & 4294967295 < length(NEW.heads) / 32
	OR (NEW.num & 4294967295 > length(NEW.heads) / 32 AND NOT EXISTS (SELECT 1 FROM records WHERE num = NEW.num - length(NEW.heads) / 32))
	OR EXISTS (SELECT 1 FROM records WHERE num > NEW.num - length(NEW.heads) / 32 AND num <= NEW.num | 4294967295)
BEGIN SELECT RAISE(ABORT, 'a record must follow the one before it'); END;
CREATE TRIGGER records_fixed BEFORE UPDATE ON records
BEGIN SELECT RAISE(ABORT, 'a record cannot be changed'); END;
CREATE TRIGGER records_kept BEFORE DELETE ON records WHEN OLD.num >> 32 NOT IN pruning
BEGIN SELECT RAISE(ABORT, 'a record is removed by pruning only'); END;

CREATE TRIGGER blobs_fixed BEFORE UPDATE ON blobs
BEGIN SELECT RAISE(ABORT, 'a blob cannot be changed'); END;
CREATE TRIGGER blobs_kept BEFORE DELETE ON blobs WHEN EXISTS (SELECT 1 FROM records WHERE blob = OLD.num)
BEGIN SELECT RAISE(ABORT, 'a record refers to this blob'); END;

-- Without the two triggers on INSERT, INSERT OR REPLACE would go around those on DELETE.
CREATE TRIGGER approvals_new BEFORE INSERT ON approvals WHEN EXISTS (SELECT 1 FROM approvals WHERE id = NEW.id OR num = NEW.num)
BEGIN SELECT RAISE(ABORT, 'an approval cannot be changed'); END;
CREATE TRIGGER decisions_new BEFORE INSERT ON decisions
WHEN EXISTS (SELECT 1 FROM decisions WHERE num = NEW.num)
BEGIN SELECT RAISE(ABORT, 'a decision cannot be changed'); END;
CREATE TRIGGER approvals_fixed BEFORE UPDATE ON approvals
BEGIN SELECT RAISE(ABORT, 'an approval cannot be changed'); END;
CREATE TRIGGER approvals_kept BEFORE DELETE ON approvals WHEN OLD.run NOT IN pruning
BEGIN SELECT RAISE(ABORT, 'an approval is removed by pruning only'); END;
CREATE TRIGGER decisions_fixed BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'a decision cannot be changed'); END;
CREATE TRIGGER decisions_kept BEFORE DELETE ON decisions
WHEN (SELECT run FROM approvals WHERE id = OLD.approval) NOT IN pruning
BEGIN SELECT RAISE(ABORT, 'a decision is removed by pruning only'); END;
`
