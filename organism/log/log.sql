-- What is asked of the log's own tables.

-- last_unit: where the log ends
SELECT first, digest, body, hash FROM units ORDER BY first DESC LIMIT 1;

-- unit_at: the unit that holds a position
SELECT first, digest, body, hash FROM units WHERE first <= ? ORDER BY first DESC LIMIT 1;

-- units_of: the units that hold a list of positions
SELECT first, digest, body FROM units
WHERE first IN (SELECT (SELECT max(first) FROM units WHERE first <= value) FROM json_each(?));

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

-- defined: every table, index, view and trigger of the log's own file, and the table that it is for
SELECT type, name, tbl_name, sql FROM sqlite_schema;

-- layout: how the tables are laid out
PRAGMA user_version;

-- contents: the content of a list of positions
SELECT position, owner, salt, json, xml, erased_at FROM content
WHERE position IN (SELECT value FROM json_each(?));

-- contents_between: the contents of all positions from one to another
SELECT position, owner, salt, json, xml, erased_at FROM content WHERE position BETWEEN ? AND ?;

-- owned: where contents of an owner lie, up to a position
SELECT position FROM content WHERE position <= ? AND owner = ? AND erased_at IS NULL;

-- positions_from: where contents lie, from a position on
SELECT position FROM content WHERE position >= ?;

-- meta: who may write, and to which timeline
SELECT epoch, timeline, mac FROM meta;

-- set_timeline: a restored log begins one of its own
UPDATE meta SET timeline = ?, mac = ?;

-- raise_epoch: fence off earlier writers
UPDATE meta SET epoch = ?, mac = ?;

-- begin_meta: a new log
INSERT INTO meta (id, epoch, timeline, mac) VALUES (1, 0, ?, ?);

-- stream_head: the last unit that holds events of a stream
SELECT max(first) FROM streams WHERE stream = ?;

-- streams_up: units of some streams, in order; each is [stream, the last position that is wanted of it]; of each stream
-- it looks at no more than may be given, or the pages of a long one would be read in the square of its length
SELECT u.first, u.digest, u.body FROM units AS u
WHERE u.first IN (
    SELECT s.first FROM json_each(?1) AS t CROSS JOIN streams AS s ON s.stream = t.value ->> 0
    AND s.first >= coalesce((SELECT max(first) FROM units WHERE first <= ?2), 0)
    AND s.first <= min(?3, t.value ->> 1, coalesce((
        SELECT e.first FROM streams AS e WHERE e.stream = t.value ->> 0
        AND e.first >= coalesce((SELECT max(first) FROM units WHERE first <= ?2), 0)
        ORDER BY e.first LIMIT 1 OFFSET CAST(?4 AS INTEGER)
    ), ?3))
)
ORDER BY u.first LIMIT ?4;

-- streams_down: the same, newest first
SELECT u.first, u.digest, u.body FROM units AS u
WHERE u.first IN (
    SELECT s.first FROM json_each(?1) AS t CROSS JOIN streams AS s ON s.stream = t.value ->> 0
    AND s.first <= min(?3, t.value ->> 1)
    AND s.first >= max(coalesce((SELECT max(first) FROM units WHERE first <= ?2), 0), coalesce((
        SELECT e.first FROM streams AS e WHERE e.stream = t.value ->> 0 AND e.first <= min(?3, t.value ->> 1)
        ORDER BY e.first DESC LIMIT 1 OFFSET CAST(?4 AS INTEGER)
    ), 0))
)
ORDER BY u.first DESC LIMIT ?4;

-- stream_begins: the unit with which each of some streams begins
SELECT t.value, u.first, u.digest, u.body
FROM json_each(?) AS t CROSS JOIN units AS u ON u.first = (SELECT min(first) FROM streams WHERE stream = t.value);

-- type_spans: the spans that hold events of some types, in order
SELECT DISTINCT span FROM types
WHERE type IN (SELECT value FROM json_each(?)) AND span >= ? AND span <= ? ORDER BY span LIMIT ?;

-- units_after: units in order, by where they begin
SELECT first, digest, body, hash FROM units WHERE first > ? AND first <= ? ORDER BY first LIMIT ?;

-- greatest_stream: a stream above this one was never written
SELECT max(stream) FROM streams;

-- model_versions: what the rows were made by
SELECT name, version FROM models;

-- set_model_version: what a model's rows are made by
REPLACE INTO models (name, version) VALUES (?, ?);

-- clear_model_versions: no row can be trusted any more
DELETE FROM models;

-- clear_streams: the index of streams is filled again with the rows
DELETE FROM streams;

-- clear_types: and that of types
DELETE FROM types;

-- clear_checkpoints: so are the live rows
DELETE FROM snapshots WHERE name = 'live';

-- tables: every table and view
SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view');

-- attach: the log, to a file whose tables are filled from it
ATTACH ? AS log;

-- layout_of_log: how its tables are laid out
PRAGMA log.user_version;

-- detach: its end
DETACH log;

-- copy: the next rows of what cannot be derived, up to a position, out of the log that is attached
INSERT INTO main.$table SELECT * FROM log.$table WHERE $key > ? AND $key <= ? ORDER BY $key LIMIT ?;

-- copied: the last row that was copied
SELECT max($key) FROM main.$table;

-- uncopy: begin again
DELETE FROM main.$table;

-- copy_meta: who may write, and to which timeline
INSERT INTO main.meta SELECT * FROM log.meta;

-- erased_later: whether something was erased after a position
SELECT EXISTS (SELECT * FROM main.content WHERE erased_at > ?);

-- newest_unit: where the last unit of the log that is attached begins
(SELECT max(first) FROM log.units);

-- next_page: the key with which the next page of a table begins
SELECT min($key) FROM main.$table
WHERE $key > (SELECT $key FROM main.$table WHERE $key >= ? ORDER BY $key LIMIT 1 OFFSET ?);

-- differs: whether a page of a table does not hold what the events make of it
SELECT EXISTS (
    SELECT $row FROM main.$table WHERE $key >= ?1 AND $key < ?2 AND $made
    EXCEPT SELECT $row FROM log.$table WHERE $key >= ?1 AND $key < ?2 AND $made
) OR EXISTS (
    SELECT $row FROM log.$table WHERE $key >= ?1 AND $key < ?2 AND $made
    EXCEPT SELECT $row FROM main.$table WHERE $key >= ?1 AND $key < ?2 AND $made
);

-- cut_units: the log ends at a position
DELETE FROM units WHERE first > ?;

-- cut_content: and so do its contents
DELETE FROM content WHERE position > ?;

-- erased_after: a content from before a position that was erased after it
SELECT position, erased_at FROM content WHERE position <= ? AND erased_at > ? LIMIT 1;

-- end_commit: the unit that now ends a commit has its hash
UPDATE units SET hash = ? WHERE first = ?;

-- save_snapshot: keep a fold
REPLACE INTO snapshots (name, position, mac, body) VALUES (?, ?, ?, ?);

-- drop_snapshots: all of a name but the newest
DELETE FROM snapshots WHERE name = ? AND position NOT IN (
    SELECT position FROM snapshots WHERE name = ? ORDER BY position DESC LIMIT ?
);

-- load_snapshot: the newest up to a position
SELECT position, mac, body FROM snapshots WHERE name = ? AND position <= ? ORDER BY position DESC LIMIT 1;

-- newest_snapshots: those that a start or a stop has left, newest first: what lies before them was verified once
SELECT name, position, mac, body FROM snapshots WHERE name <> 'live' ORDER BY position DESC;

-- has_tables: whether the file has tables yet
SELECT count(*) FROM sqlite_schema;

-- drop: a derived table or view
DROP $type $table;

-- How a commit gets into all tables: a view of the writing connection alone (TEMP), no part of the file.

-- commits: what a commit is given; `blob` holds digests, bodies, contents and rows, which the lists slice
CREATE TEMP VIEW commits AS
SELECT
    NULL AS epoch, NULL AS final, NULL AS hash, NULL AS units, NULL AS contents, NULL AS streams, NULL AS types,
    NULL AS erasures, NULL AS blob$columns;

-- erasing: what a commit erases, another view of the same kind
CREATE TEMP VIEW erasing AS SELECT NULL AS erasures;

-- contents_erased: a trigger of its own, since an UPDATE … FROM that finds nothing costs as much as a row
CREATE TEMP TRIGGER contents_erased INSTEAD OF INSERT ON erasing WHEN new.erasures <> '[]'
BEGIN
    UPDATE content SET salt = x'', json = x'', xml = x'', erased_at = e.value ->> 3
    FROM jsonb_each(new.erasures) AS e
    WHERE position BETWEEN e.value ->> 0 AND e.value ->> 1 AND owner = e.value ->> 2 AND erased_at IS NULL;
END;

-- commit_spreads: one INSERT into `commits` is one statement, one transaction, one fsync
CREATE TEMP TRIGGER commit_spreads INSTEAD OF INSERT ON commits
BEGIN
    SELECT raise(ABORT, 'fenced') FROM meta WHERE epoch <> new.epoch;
    INSERT INTO units (first, digest, body, hash)
    SELECT
        value ->> 0,
        substr(new.blob, value ->> 1, 32),
        substr(new.blob, (value ->> 1) + 32, value ->> 2),
        CASE value ->> 0 WHEN new.final THEN new.hash END
    FROM jsonb_each(new.units);
    INSERT INTO content (position, owner, salt, json, xml)
    SELECT
        value ->> 0,
        value ->> 1,
        substr(new.blob, value ->> 2, 16),
        substr(new.blob, (value ->> 2) + 16, value ->> 3),
        substr(new.blob, (value ->> 2) + 16 + (value ->> 3), value ->> 4)
    FROM jsonb_each(new.contents);
    -- not another trigger on `commits`: an erasure must find the contents of its own commit, and triggers have no order
    INSERT INTO erasing VALUES (new.erasures);
END;

-- indexes_spread: what the same INSERT adds to the indexes of streams and of types
CREATE TEMP TRIGGER indexes_spread INSTEAD OF INSERT ON commits
BEGIN
    INSERT INTO streams (stream, first) SELECT value ->> 0, value ->> 1 FROM jsonb_each(new.streams);
    INSERT OR IGNORE INTO types (type, span) SELECT value ->> 0, value ->> 1 FROM jsonb_each(new.types);
END;

-- commit: write a commit whole, or not at all
INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?$values);
