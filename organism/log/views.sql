-- What can be deleted and made again from the log: streams, read models, snapshots.

-- views_meta: how far the rows have come, of which log, and under which epoch they may be written
CREATE TABLE views_meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    timeline TEXT NOT NULL,
    epoch INTEGER NOT NULL
) STRICT;

-- models: the version that each read model's rows were made by
CREATE TABLE models (name TEXT PRIMARY KEY, version TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- streams: which units hold events of a stream
CREATE TABLE streams (stream TEXT NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (stream, first)) STRICT, WITHOUT ROWID;

-- snapshots: folds as they stood at a position
CREATE TABLE snapshots (
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    timeline TEXT NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (name, position)
) STRICT;

-- state: how far the rows have come
SELECT position, timeline FROM views_meta;

-- begin_state: new tables
INSERT INTO views_meta (id, position, timeline, epoch) VALUES (1, 0, ?, ?);

-- claim: from now on only rows of this epoch are taken
UPDATE views_meta SET epoch = ?;

-- note_model: what a model's rows are made by
INSERT INTO models (name, version) VALUES (?, ?);

-- payload: the content that completes a row
SELECT json FROM content WHERE position = ? AND length(salt) > 0;

-- save_snapshot: keep a fold
REPLACE INTO snapshots (name, position, timeline, digest, body) VALUES (?, ?, ?, ?, ?);

-- drop_snapshots: all of a name but the newest
DELETE FROM snapshots WHERE name = ? AND position NOT IN (
    SELECT position FROM snapshots WHERE name = ? ORDER BY position DESC LIMIT ?
);

-- load_snapshots: newest first
SELECT position, digest, body FROM snapshots WHERE name = ? AND timeline = ? AND position <= ? ORDER BY position DESC;

-- newest_snapshot: how far any fold was kept
SELECT max(position) FROM snapshots;

-- tables: what is there, and whether it is a table or a view
SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view');

-- made_models: what the rows were made by
SELECT name, version FROM models;

-- drop: a table or view that is made anew
DROP $type $table;

-- greatest_stream: a stream above this one was never indexed
SELECT max(stream) FROM streams;
