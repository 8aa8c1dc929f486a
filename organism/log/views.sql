-- What can be deleted and made again from the log: streams, read models, snapshots.

-- views_meta: how far the rows have come, and of which log
CREATE TABLE views_meta (id INTEGER PRIMARY KEY CHECK (id = 1), position INTEGER NOT NULL, timeline TEXT NOT NULL) STRICT;

-- models: the version that each read model's rows were made by
CREATE TABLE models (name TEXT PRIMARY KEY, version TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- streams: which units hold events of a stream
CREATE TABLE streams (stream TEXT NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (stream, first)) STRICT, WITHOUT ROWID;

-- snapshots: folds as they stood at a position
CREATE TABLE snapshots (
    name TEXT NOT NULL, position INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (name, position)
) STRICT;

-- state: how far the rows have come
SELECT position, timeline FROM views_meta;

-- begin_state: new tables
INSERT INTO views_meta (id, position, timeline) VALUES (1, 0, ?);
