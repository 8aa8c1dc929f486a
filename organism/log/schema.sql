-- The source of everything else: units in order, and their contents. One statement a name (organism/sqlite/driver.py).

-- layout: rises when these tables change
PRAGMA user_version = 2;

-- meta: one row; `epoch` rises with each open and fences off earlier processes; `mac` covers it and the timeline
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    timeline TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;

-- units: one row a unit; `first` is the position of its first event; the last unit of a commit carries the commit's hash
CREATE TABLE units (
    first INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    hash BLOB
) STRICT;

-- content: what can be erased; an erased row stays, empty, and `erased_at` is the position of the event that says so
CREATE TABLE content (
    position INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    salt BLOB NOT NULL,
    json BLOB NOT NULL,
    xml BLOB NOT NULL,
    erased_at INTEGER
) STRICT;

-- streams: which units hold events of a stream
CREATE TABLE streams (stream TEXT NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (stream, first)) STRICT, WITHOUT ROWID;

-- types: which spans of the log hold events of a type
CREATE TABLE types (type TEXT NOT NULL, span INTEGER NOT NULL, PRIMARY KEY (type, span)) STRICT, WITHOUT ROWID;

-- models: the version that each read model's rows were made by
CREATE TABLE models (name TEXT PRIMARY KEY, version TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- snapshots: states of folds at a position; they can be deleted
CREATE TABLE snapshots (
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    mac BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (name, position)
) STRICT;
