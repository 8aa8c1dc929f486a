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

-- streams: which units hold events of which streams, out of a flush
INSERT OR IGNORE INTO streams (stream, first) SELECT value ->> 0, value ->> 1 FROM json_each(new.streams);

-- position: how far the rows have come, out of a flush
UPDATE views_meta SET position = new.position;

-- flushes: what a flush is given: for each model what to write (w_) and what to delete (d_)
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
