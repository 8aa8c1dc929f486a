-- The truth: units in order, and the content beside them. One statement a name (organism/log/queries.py).

-- meta: one row; `epoch` rises with each open and fences off whoever opened before
CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    epoch INTEGER NOT NULL,
    timeline TEXT NOT NULL
) STRICT;

-- units: one row a unit; `first` is the position of its first event; the last unit of a commit carries the commit's hash
CREATE TABLE units (
    first INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    hash BLOB
) STRICT;

-- content: what can be erased; an erased row stays, with an empty salt and no text
CREATE TABLE content (
    position INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    salt BLOB NOT NULL,
    json BLOB NOT NULL,
    xml BLOB NOT NULL
) STRICT;

-- commits: what a commit is given; `blob` holds digests, bodies and contents, which `units` and `contents` slice
CREATE VIEW commits AS
SELECT NULL AS epoch, NULL AS final, NULL AS hash, NULL AS units, NULL AS contents, NULL AS blob;

-- commit_spreads: one INSERT into `commits` is one statement, one transaction, one fsync
CREATE TRIGGER commit_spreads INSTEAD OF INSERT ON commits
BEGIN
    SELECT raise(ABORT, 'fenced') FROM meta WHERE epoch <> new.epoch;
    INSERT INTO units (first, digest, body, hash)
    SELECT
        value ->> 0,
        substr(new.blob, value ->> 1, 32),
        substr(new.blob, (value ->> 1) + 32, value ->> 2),
        CASE value ->> 0 WHEN new.final THEN new.hash END
    FROM json_each(new.units);
    INSERT INTO content (position, owner, salt, json, xml)
    SELECT
        value ->> 0,
        value ->> 1,
        substr(new.blob, value ->> 2, 16),
        substr(new.blob, (value ->> 2) + 16, value ->> 3),
        substr(new.blob, (value ->> 2) + 16 + (value ->> 3), value ->> 4)
    FROM json_each(new.contents);
END;
