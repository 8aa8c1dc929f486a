-- What is made for each read model: `$table` is its table, `$fields` its declared columns (organism/log/rows/tables.py).
-- At the end how a commit gets into them: a trigger of the writing connection alone (TEMP), no part of the file.

-- table: a row a version, valid from the position in `version` on and before that in `until`; `public` is
-- what the API shows, `private` the fold's own, `content_at` where its payload lies
CREATE TABLE $table (
    version INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    until INTEGER NOT NULL,
    public BLOB NOT NULL,
    private BLOB NOT NULL,
    content_at INTEGER NOT NULL$fields
) STRICT;

-- by_key: the versions of a row; SQLite ends each index with `version`
CREATE INDEX ${table}_key ON $table (key);

-- index: for one way to search
CREATE INDEX ${table}_$number ON $table ($fields, until);

-- table_final: rows that never change: each lies at the position of its event, which is where its payload lies too
CREATE TABLE $table (content_at INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, public BLOB NOT NULL$fields) STRICT;

-- index_final: for one way to search rows that never change: SQLite ends it with the position
CREATE INDEX ${table}_$number ON $table ($fields);

-- newest: the newest of a row's versions before one
SELECT version, until, public, private, content_at FROM $table WHERE key = ? AND version < ?
ORDER BY version DESC LIMIT 1;

-- final: a row that never changes, if it was there at a position
SELECT content_at, public, x'' FROM $table WHERE key = ? AND content_at <= ?;

-- greatest: a key above this one was never written
SELECT max(key) FROM $table;

-- add: versions out of a commit; each is [version, key, where and how long public is, the same of private, content_at, …]
INSERT INTO $table
SELECT
    value ->> 0,
    value ->> 1,
    9223372036854775807,
    substr(new.blob, value ->> 2, value ->> 3),
    substr(new.blob, value ->> 4, value ->> 5),
    value ->> 6$fields
FROM jsonb_each(new.add_$model);

-- add_final: the same of rows that never change
INSERT INTO $table
SELECT value ->> 6, value ->> 1, substr(new.blob, value ->> 2, value ->> 3)$fields FROM jsonb_each(new.add_$model);

-- end: versions that a commit ends; each is [version, until]
UPDATE $table SET until = e.value ->> 1 FROM jsonb_each(new.end_$model) AS e WHERE version = e.value ->> 0;

-- live: what is before the statement of a page whose rows are in memory; each is [key, public, …]
WITH $table AS (
    SELECT
        value ->> 0 AS key,
        value ->> 1 AS public,
        0 AS version,
        9223372036854775807 AS until,
        0 AS content_at$fields
    FROM jsonb_each(?)
);

-- page: one row: the rows of a page, one a line, how many they are, how many match, how many of them come before it,
-- the place of its last row, where their contents lie, and what is counted with each; a bare `LIMIT ?` would make SQLite prepare the statement again for each number
SELECT
    CAST(group_concat(public, char(10)) AS BLOB),
    count(*),
    $total,
    $before,
    json_group_array(json(place)) ->> '$$[#-1]',
    json_group_array($content_at),
    json_group_array(json_array($counted))
FROM (
    SELECT r.key, r.public, json_array($by, r.key) AS place, r.content_at FROM $table AS r $content $where
    ORDER BY $order LIMIT CAST(? AS INTEGER) OFFSET CAST(? AS INTEGER)
) AS shown;

-- completing: of one row: where its content lies, and what is counted with it
SELECT $content_at, json_array($counted) FROM (SELECT ? AS key) AS shown;

-- first_in: where the content of the first row lies that names a shown one
(SELECT t.content_at FROM $table AS t WHERE t.$column = shown.key ORDER BY t.content_at LIMIT 1);

-- counted_in: the keys that rows of other models name, each of which is counted
SELECT r.$column FROM $table AS r $where;

-- count: how many rows match
(SELECT count(*) FROM $table AS r $content $where);

-- sums: what the rows of each group add up to
SELECT $by, count(*)$totals FROM $table AS r $where GROUP BY $by ORDER BY min(r.rowid);

-- content: where a text is searched for
LEFT JOIN content AS c ON c.position = r.content_at;

-- valid: the rows at a position: versions before one that ended after it
r.version < ? AND r.until > ?;

-- valid_counted: the same where rows are only counted: `+` has SQLite walk an index that holds all it needs, not the table
+r.version < ? AND r.until > ?;

-- valid_final: the same of rows that never change
r.content_at <= ?;

-- valid_final_counted: and where they are only counted
+r.content_at <= ?;

-- text: the content holds a text, A–Z and a–z alike
instr(lower(CAST(c.json AS TEXT)), lower(?)) > 0;

-- text_in: a row of another model that names this one holds it, and was there at the position
EXISTS (
    SELECT 1 FROM $table AS t JOIN content AS c ON c.position = t.content_at
    WHERE t.$column = r.key
    AND t.content_at <= ? AND instr(lower(CAST(c.json AS TEXT)), lower(?)) > 0
);

-- among: a field holds the key of one of these rows of another model
$field IN (SELECT r.key FROM $table AS r $where);

-- elapsed: µs between two times, which are text as it is shown; a date function would round them to ms
(unixepoch(substr($until, 1, 19)) - unixepoch(substr($since, 1, 19))) * 1000000
+ substr($until, 21, 6) - substr($since, 21, 6);

-- amount: decimal numbers as text that sorts as they do, since a REAL is not exact
printf('%020d', CAST($field AS INTEGER)) || ltrim($field, '0123456789');

-- one_of: a field is in a list
$field IN (SELECT value FROM json_each(?));

-- has: a list column holds a name
instr($field, ?) > 0;

-- has_any: a list column holds one of some names
EXISTS (SELECT 1 FROM json_each(?) WHERE instr($field, value) > 0);

-- rows_spread: what the INSERT of a commit (organism/log/log.sql) makes of the rows of a model; one that a commit leaves alone costs nothing
CREATE TEMP TRIGGER spread_$name INSTEAD OF INSERT ON commits
WHEN new.add_$name <> '[]' OR new.end_$name <> '[]'
BEGIN
    $steps
END;
