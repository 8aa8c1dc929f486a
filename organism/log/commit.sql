-- How a commit gets into the tables: a view of the writing connection alone (TEMP), no part of the file.

-- commits: what a commit is given; `blob` holds digests, bodies, contents and rows, which the lists slice
CREATE TEMP VIEW commits AS
SELECT
    NULL AS epoch, NULL AS final, NULL AS hash, NULL AS units, NULL AS contents, NULL AS streams, NULL AS types,
    NULL AS blob$fields;

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
END;

-- indexes_spread: what the same INSERT adds to the indexes of streams and of types
CREATE TEMP TRIGGER indexes_spread INSTEAD OF INSERT ON commits
BEGIN
    INSERT INTO streams (stream, first) SELECT value ->> 0, value ->> 1 FROM jsonb_each(new.streams);
    INSERT OR IGNORE INTO types (type, span) SELECT value ->> 0, value ->> 1 FROM jsonb_each(new.types);
END;

-- rows_spread: what the same INSERT makes of the rows of a model; one that a commit leaves alone costs nothing
CREATE TEMP TRIGGER spread_$name INSTEAD OF INSERT ON commits
WHEN new.add_$name IS NOT NULL OR new.end_$name IS NOT NULL
BEGIN
    $steps
END;

-- commit: write a commit whole, or not at all
INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?$values);
