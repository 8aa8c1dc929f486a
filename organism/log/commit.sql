-- How a commit gets into the tables: views of the writing connection alone (TEMP), no part of the file.

-- commits: what a commit is given; `blob` holds digests, bodies and contents, which `units` and `contents` slice
CREATE TEMP VIEW commits AS
SELECT NULL AS epoch, NULL AS final, NULL AS hash, NULL AS units, NULL AS contents, NULL AS blob;

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

-- commits_alone: what a commit of one unit with at most one content is given; without content its `position` is NULL
CREATE TEMP VIEW commits_alone AS
SELECT
    NULL AS epoch, NULL AS first, NULL AS digest, NULL AS body, NULL AS hash,
    NULL AS position, NULL AS owner, NULL AS salt, NULL AS json, NULL AS xml;

-- commit_alone_spreads: the same as above without the lists: where nobody else waits, each microsecond is felt
CREATE TEMP TRIGGER commit_alone_spreads INSTEAD OF INSERT ON commits_alone
BEGIN
    SELECT raise(ABORT, 'fenced') FROM meta WHERE epoch <> new.epoch;
    INSERT INTO units (first, digest, body, hash) VALUES (new.first, new.digest, new.body, new.hash);
    INSERT INTO content (position, owner, salt, json, xml)
    SELECT new.position, new.owner, new.salt, new.json, new.xml WHERE new.position IS NOT NULL;
END;
