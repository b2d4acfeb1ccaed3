package journal

// Every statement but the schema's.
const (
	sqlAddRun = `INSERT INTO runs (id, team, plan, core, author, created_at, sum, status)
VALUES (?, ?, ?, ?, ?, ?, ?, 'running') ON CONFLICT (id) DO NOTHING`
	sqlTakeRun   = `UPDATE runs SET status = 'running', exit_code = 0, ended_at = 0, attempt = attempt + 1 WHERE num = ?`
	sqlSetStatus = `UPDATE runs SET status = ?, exit_code = ?, ended_at = ?, durable = ? WHERE num = ?`
	sqlDurable   = `UPDATE runs SET durable = ? WHERE num = ?`

	sqlRuns = `SELECT num, id, team, plan, core, author, created_at, sum, ended_at, status, exit_code, attempt, durable,
coalesce((SELECT num & 4294967295 FROM records
	WHERE num BETWEEN runs.num << 32 AND (runs.num << 32) + 4294967295 ORDER BY num DESC LIMIT 1), 0) FROM runs`
	sqlRunByID  = sqlRuns + ` WHERE id = ?`
	sqlRunsLast = sqlRuns + ` WHERE (?1 = '' OR team = ?1) ORDER BY num DESC`
	sqlRunIDs   = `SELECT id FROM runs ORDER BY num DESC LIMIT 1000`

	sqlAddRecords = `INSERT INTO records (num, body, heads) VALUES (?, ?, ?)`
	sqlAddBlob    = `INSERT INTO blobs (digest, body) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING`
	sqlAddCut     = `INSERT INTO records (num, body, blob, cut, heads) SELECT ?, ?, num, ?, ? FROM blobs WHERE digest = ?`
	sqlLastRecord = `SELECT num, substr(heads, -32) FROM records WHERE num BETWEEN ? AND ? ORDER BY num DESC LIMIT 1`
	sqlRecords    = `SELECT num, body, blob, cut, heads FROM records WHERE num > ? AND num <= ? ORDER BY num`
	sqlAttach     = `INSERT INTO attachments (run, digest, blob) SELECT ?, ?, num FROM blobs WHERE digest = ? ON CONFLICT DO NOTHING`
	sqlAttached   = `SELECT blobs.digest, body FROM attachments JOIN blobs ON blobs.num = blob WHERE run = ? AND attachments.digest = ?`
	sqlBlob       = `SELECT digest, body FROM blobs WHERE num = ?`

	sqlAddApproval = `INSERT INTO approvals (id, run, scope, boundary, request_hash, content, reason, requested_at, expires, sum)
SELECT ?, num, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE id = ?`
	sqlApprovals = `SELECT a.id, r.id, a.scope, a.boundary, a.request_hash, a.content, a.reason, a.requested_at, a.expires, a.sum,
coalesce(d.num, 0), coalesce(d.reviewer, ''), coalesce(d.verdict, ''), coalesce(d.reason, ''), coalesce(d.signature, x''),
coalesce(d.decided_at, 0), coalesce(d.sum, '')
FROM approvals a JOIN runs r ON r.num = a.run LEFT JOIN decisions d ON d.approval = a.id`
	sqlApprovalByID = sqlApprovals + ` WHERE a.id = ? ORDER BY d.num`
	sqlApprovalsAll = sqlApprovals + ` WHERE (?1 = '' OR r.id = ?1) ORDER BY a.num, d.num`
	sqlApprovalIDs  = `SELECT id FROM approvals ORDER BY num DESC`
	sqlAddDecision  = `INSERT INTO decisions (approval, reviewer, verdict, reason, signature, decided_at, sum)
VALUES (?, ?, ?, ?, ?, ?, ?)`

	sqlPrunable = `SELECT num, id FROM runs WHERE (?3 = 0 OR num = ?3) AND ((status = 'ended' AND ended_at < ?1)
	OR ((?2 AND status IN ('running', 'interrupted') OR ?4 AND status = 'suspended') AND created_at < ?1)) ORDER BY num`
)

// sqlPrune removes one run. Each statement but the first and the last is of its own table, children first.
var sqlPrune = []string{
	`INSERT INTO pruning (run) VALUES (?1)`,
	`CREATE TEMP TABLE loose AS SELECT DISTINCT blob AS num FROM records
WHERE num BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295 AND blob IS NOT NULL
UNION SELECT blob FROM attachments WHERE run = ?1`,
	`DELETE FROM attachments WHERE run = ?1`,
	`DELETE FROM records WHERE num BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295`,
	`DELETE FROM blobs WHERE num IN (SELECT num FROM temp.loose) AND NOT EXISTS (SELECT 1 FROM records WHERE blob = blobs.num)
AND NOT EXISTS (SELECT 1 FROM attachments WHERE blob = blobs.num)`,
	`DROP TABLE temp.loose`,
	`DELETE FROM decisions WHERE approval IN (SELECT id FROM approvals WHERE run = ?1)`,
	`DELETE FROM approvals WHERE run = ?1`,
	`DELETE FROM runs WHERE num = ?1`,
	`DELETE FROM pruning WHERE run = ?1`,
}
