-- What is asked of the log's own tables.

-- commit: write a commit whole, or not at all
INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?);

-- commit_alone: the same for one unit
INSERT INTO commits_alone VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- last_unit: where the log ends
SELECT first, digest, body, hash FROM units ORDER BY first DESC LIMIT 1;

-- unit_at: the unit that holds a position
SELECT first, digest, body, hash FROM units WHERE first <= ? ORDER BY first DESC LIMIT 1;

-- units_up: units in order, from the one that holds the first position
SELECT first, digest, body, hash FROM units
WHERE first >= coalesce((SELECT max(first) FROM units WHERE first <= ?), 0) AND first <= ?
ORDER BY first LIMIT ?;

-- units_down: the same, newest first
SELECT first, digest, body, hash FROM units
WHERE first >= coalesce((SELECT max(first) FROM units WHERE first <= ?), 0) AND first <= ?
ORDER BY first DESC LIMIT ?;

-- commit_before: the last commit that ends before a position
SELECT first, body, hash FROM units WHERE first < ? AND hash IS NOT NULL ORDER BY first DESC LIMIT 1;

-- contents: the content of a list of positions
SELECT position, owner, salt, json, xml FROM content WHERE position IN (SELECT value FROM json_each(?));

-- epoch: who may write
SELECT epoch, timeline FROM meta;

-- raise_epoch: fence off whoever opened before
UPDATE meta SET epoch = epoch + 1;

-- begin_meta: a new log
INSERT INTO meta (id, epoch, timeline) VALUES (1, 0, ?);

-- bodies: rows in order, as fast as they come
SELECT first, body FROM units WHERE first > ? AND first <= ? ORDER BY first LIMIT ?;

-- stream_head: the last unit that holds events of a stream
SELECT max(first) FROM streams WHERE stream = ?;

-- streams_up: units of some streams, in order: those of the index, and those that are named
SELECT u.first, u.digest, u.body FROM units AS u
WHERE u.first IN (
    SELECT s.first FROM streams AS s
    WHERE s.stream IN (SELECT value FROM json_each(?1))
    AND s.first >= coalesce((SELECT max(first) FROM units WHERE first <= ?3), 0) AND s.first <= ?4
    UNION
    SELECT value FROM json_each(?2)
    WHERE value >= coalesce((SELECT max(first) FROM units WHERE first <= ?3), 0) AND value <= ?4
)
ORDER BY u.first LIMIT ?5;

-- streams_down: the same, newest first
SELECT u.first, u.digest, u.body FROM units AS u
WHERE u.first IN (
    SELECT s.first FROM streams AS s
    WHERE s.stream IN (SELECT value FROM json_each(?1))
    AND s.first >= coalesce((SELECT max(first) FROM units WHERE first <= ?3), 0) AND s.first <= ?4
    UNION
    SELECT value FROM json_each(?2)
    WHERE value >= coalesce((SELECT max(first) FROM units WHERE first <= ?3), 0) AND value <= ?4
)
ORDER BY u.first DESC LIMIT ?5;

-- units_after: units in order, by where they begin
SELECT first, digest, body, hash FROM units WHERE first > ? ORDER BY first LIMIT ?;

-- is_made: whether the file has tables yet
SELECT count(*) FROM sqlite_schema;
