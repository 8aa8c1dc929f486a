-- What is made for each read model: `$table` is its table, `$fields` its declared columns (organism/log/tables.py).

-- table: one row a key; `public` is what the API shows, `private` the fold's own, `content_at` where its payload lies
CREATE TABLE $table (
    key TEXT PRIMARY KEY,
    public BLOB NOT NULL,
    private BLOB NOT NULL,
    content_at INTEGER NOT NULL$fields
) STRICT, WITHOUT ROWID;

-- index: for one way to search or sort
CREATE INDEX ${table}_$number ON $table ($fields);

-- past: the rows of a model that change, as they stood at each milestone from `since` on and before `until`
CREATE TABLE past_$model (
    key TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL,
    public BLOB NOT NULL,
    private BLOB NOT NULL,
    content_at INTEGER NOT NULL$fields,
    PRIMARY KEY (key, since)
) STRICT, WITHOUT ROWID;

-- past_index: for one way to search or sort; it says of each row when it stood so
CREATE INDEX past_${model}_$number ON past_$model (${fields}since, until);

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
    value ->> 5$fields
FROM json_each(new.w_$model);

-- delete: rows that a flush takes away
DELETE FROM $table WHERE key IN (SELECT value FROM json_each(new.d_$model));

-- end_past: rows that stood at a milestone before the flush's own, and not so at these; each is [key, milestone]
UPDATE past_$model SET until = ended.value ->> 1 FROM json_each(new.e_$model) AS ended
WHERE past_$model.key = ended.value ->> 0 AND past_$model.until = $for_ever;

-- write_past: rows at milestones; each is [key, since, until, where and how long …] as in `write`
INSERT INTO past_$model
SELECT
    value ->> 0,
    value ->> 1,
    value ->> 2,
    substr(new.blob, value ->> 3, value ->> 4),
    substr(new.blob, value ->> 5, value ->> 6),
    value ->> 7$fields
FROM json_each(new.p_$model);

-- row_at: one row as it stood at a milestone
SELECT public, private FROM past_$model WHERE key = ? AND since <= ? AND until > ?;

-- final_row_at: one row of a model that never changes, if it was there at a position
SELECT public, content_at FROM $table WHERE key = ? AND content_at <= ?;

-- kept: rows of a milestone, but for those that changed since
r.since <= ? AND r.until > ? AND r.key NOT IN (SELECT value FROM json_each(?));

-- forward: rows that changed since a milestone, as a table; each is [key, public, content_at, fields …]
(SELECT value ->> 0 AS key, CAST(value ->> 1 AS BLOB) AS public, value ->> 2 AS content_at$fields FROM json_each(?));

-- stood: the rows that a page of the past is taken from
(
    SELECT * FROM (
        SELECT r.key, r.public, r.content_at$columns FROM past_$model AS r $content $kept ORDER BY $order LIMIT ?
    )
    UNION ALL
    SELECT r.key, r.public, r.content_at$columns FROM $forward AS r $content $changed
);

-- total_at: how many rows matched then
SELECT (SELECT count(*) FROM past_$model AS r $content $kept)
    + (SELECT count(*) FROM $forward AS r $content $changed);

-- streams: which units hold events of which streams, out of a flush
INSERT OR IGNORE INTO streams (stream, first) SELECT value ->> 0, value ->> 1 FROM json_each(new.streams);

-- position: how far the rows have come, out of a flush
UPDATE views_meta SET position = new.position;

-- flushes: what a flush is given: for each model what to write (w_), to delete (d_), to end (e_) and past rows (p_)
CREATE TEMP VIEW flushes AS SELECT NULL AS position, NULL AS streams, NULL AS blob$fields;

-- flush_spreads: one INSERT writes the rows of all models, the streams and the position, or nothing
CREATE TEMP TRIGGER flush_spreads INSTEAD OF INSERT ON flushes BEGIN $steps; END;

-- flush: the INSERT for it
INSERT INTO flushes VALUES (?, ?, ?$fields);

-- page: one row: the finished JSON array of a page, and how many rows it has
SELECT CAST('[' || coalesce(group_concat(finished, ','), '') || ']' AS BLOB), count(*)
FROM (SELECT $row AS finished FROM $table AS r $content $where ORDER BY $order LIMIT ? OFFSET ?);

-- page_row: a row without content
r.public;

-- page_row_with_content: a row completed by its payload
substr(r.public, 1, length(r.public) - 1) || ',"payload":'
|| CASE WHEN length(c.salt) > 0 THEN c.json ELSE '{"erased":true}' END || '}';

-- content: where the payload comes from
LEFT JOIN content AS c ON c.position = r.content_at;

-- total: how many rows match
SELECT count(*) FROM $table AS r $content $where;

-- text: the content holds a text, A–Z and a–z alike
instr(lower(CAST(c.json AS TEXT)), lower(?)) > 0;

-- one_of: a field is in a list
$field IN (SELECT value FROM json_each(?));

-- has: a list column holds a name
instr($field, ?) > 0;
