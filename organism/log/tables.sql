-- What is made for each read model: `$table` is its table, `$fields` its declared columns (organism/log/tables.py).

-- table: one row a key; `public` is what the API shows, `private` the fold's own, `content_at` where its payload lies,
-- `since` the milestone since which it stands so
CREATE TABLE $table (
    key TEXT PRIMARY KEY,
    public BLOB NOT NULL,
    private BLOB NOT NULL,
    content_at INTEGER NOT NULL,
    since INTEGER NOT NULL$fields
) STRICT, WITHOUT ROWID;

-- table_by_position: what is kept of rows that never change: each lies at the position of its event, which is where its
-- payload lies too
CREATE TABLE $table (content_at INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE$fields) STRICT;

-- rows_by_position: the rows as they are read; a generated column would be made for each row that is written
CREATE VIEW $view AS
SELECT content_at, key, CAST(json_object($shown) AS BLOB) AS public, x'' AS private$names FROM $table;

-- time: µs as ISO 8601 with six digits (organism/model/times.py)
replace(datetime($column / 1000000, 'unixepoch'), ' ', 'T') || printf('.%06dZ', $column % 1000000);

-- index_by_position: for one way to search or sort, in the order of pages: SQLite ends it with the position
CREATE INDEX ${table}_$number ON $table ($fields);

-- index: for one way to search or sort, in the order of pages; it says since when a row stands so
CREATE INDEX ${table}_$number ON $table ($fields, key, since);

-- past: rows of a model that have changed since, as they stood at the milestones from `since` on and before `until`
CREATE TABLE past_$model (
    key TEXT NOT NULL,
    public BLOB NOT NULL,
    private BLOB NOT NULL,
    content_at INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL$fields,
    PRIMARY KEY (key, since)
) STRICT, WITHOUT ROWID;

-- past_index: those that stood at a milestone
CREATE INDEX past_${model}_until ON past_$model (until, since);

-- row: one row as it is kept
SELECT public, private FROM $table WHERE key = ?;

-- greatest: a key above this one was never written
SELECT max(key) FROM $table;

-- write: rows out of a flush; each is [key, where and how long public is, the same of private, content_at, fields …]
REPLACE INTO $table
SELECT
    value ->> 0,
    substr(new.blob, value ->> 1, value ->> 2),
    substr(new.blob, value ->> 3, value ->> 4),
    value ->> 5,
    value ->> 6$fields
FROM jsonb_each(new.w_$model);

-- write_by_position: rows out of a flush that lie by position; each is [key, fields …]
REPLACE INTO $table (content_at, key$names)
SELECT value ->> $position, value ->> 0$fields FROM jsonb_each(new.w_$model);

-- delete: rows that a flush takes away
DELETE FROM $table WHERE key IN (SELECT value FROM jsonb_each(new.d_$model));

-- write_past: rows that stood until a milestone; each is [key, until, and the rest as in `write`]
REPLACE INTO past_$model
SELECT
    value ->> 0,
    substr(new.blob, value ->> 2, value ->> 3),
    substr(new.blob, value ->> 4, value ->> 5),
    value ->> 6,
    value ->> 7,
    value ->> 1$fields
FROM jsonb_each(new.p_$model);

-- row_at: one row as it stood at a milestone
SELECT public, private FROM $table WHERE key = ? AND since <= ?
UNION ALL
SELECT public, private FROM past_$model WHERE key = ? AND since <= ? AND until > ?;

-- final_row_at: one row of a model that never changes, if it was there at a position
SELECT public, content_at FROM $table WHERE key = ? AND content_at <= ?;

-- unchanged: rows that have stood so since a milestone or longer, but for those that changed right after it
r.since <= ? AND r.key NOT IN (SELECT value FROM json_each(?));

-- changed: rows that stood at a milestone and have changed since, but for those that changed right after it
r.since <= ? AND r.until > ? AND r.key NOT IN (SELECT value FROM json_each(?));

-- covered: rows but for those that are laid over them
r.key NOT IN (SELECT value FROM json_each(?));

-- covered_by_position: the same where rows lie by position: an index knows it
r.content_at NOT IN (SELECT value FROM json_each(?));

-- forward: rows that are laid over those of a table, as a table; each is [key, public, content_at, fields …]
(SELECT value ->> 0 AS key, CAST(value ->> 1 AS BLOB) AS public, value ->> 2 AS content_at$fields FROM json_each(?));

-- streams: which units hold events of which streams, out of a flush
INSERT OR IGNORE INTO streams (stream, first) SELECT value ->> 0, value ->> 1 FROM jsonb_each(new.streams);

-- fence: who wrote before this life of the log writes no more
SELECT raise(ABORT, 'fenced') FROM views_meta WHERE epoch <> new.epoch;

-- position: how far the rows have come, out of a flush
UPDATE views_meta SET position = new.position;

-- flushes: what a flush is given: for each model what to write (w_), to delete (d_), and of the past (p_)
CREATE TEMP VIEW flushes AS SELECT NULL AS epoch, NULL AS position, NULL AS streams, NULL AS blob$fields;

-- flush_spreads: one INSERT writes the rows of all models, the streams and the position, or nothing
CREATE TEMP TRIGGER flush_spreads INSTEAD OF INSERT ON flushes BEGIN $steps; END;

-- flush: the INSERT for it
INSERT INTO flushes VALUES (?, ?, ?, ?$fields);

-- page: one row: the finished JSON array of a page, how many rows it has, how many match; a bare `LIMIT ?` would make
-- SQLite prepare the statement anew for each number
SELECT CAST('[' || coalesce(group_concat(finished, ','), '') || ']' AS BLOB), count(*), $total
FROM (
    SELECT $row AS finished FROM $table AS r $content $where
    ORDER BY $order LIMIT CAST(? AS INTEGER) OFFSET CAST(? AS INTEGER)
);

-- leg: rows from one place of several; it gives no more than the page may need
SELECT * FROM (
    SELECT r.key, r.public, r.content_at$columns FROM $table AS r $content $where
    ORDER BY $order LIMIT CAST(? AS INTEGER)
);

-- page_row: a row without content
r.public;

-- page_row_with_content: a row completed by its payload
substr(r.public, 1, length(r.public) - 1) || ',"payload":'
|| CASE WHEN length(c.salt) > 0 THEN c.json ELSE '{"erased":true}' END || '}';

-- page_row_shown: the same of a model that says how it is shown: its JSON is made here, once, and holds no object
rtrim(CAST(r.public AS TEXT), '}') || ',"payload":'
|| CASE WHEN length(c.salt) > 0 THEN c.json ELSE '{"erased":true}' END || '}';

-- content: where the payload comes from
LEFT JOIN content AS c ON c.position = r.content_at;

-- total: how many rows match in one place
(SELECT count(*) FROM $table AS r $content $where);

-- text: the content holds a text, A–Z and a–z alike
instr(lower(CAST(c.json AS TEXT)), lower(?)) > 0;

-- text_in: a row of another model that names this one holds it; at a position, only if it was there then
EXISTS (
    SELECT 1 FROM $table AS t JOIN content AS c ON c.position = t.content_at
    WHERE t.$column = r.key AND t.content_at <= ? AND instr(lower(CAST(c.json AS TEXT)), lower(?)) > 0
);

-- one_of: a field is in a list
$field IN (SELECT value FROM json_each(?));

-- has: a list column holds a name
instr($field, ?) > 0;
