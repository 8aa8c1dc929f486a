-- The library of one tenant. A row is a version of a document: it shows in generations from `added` to before `removed`.

-- create_documents: the texts; `ordinal` is the document's place in its index and stays
CREATE TABLE documents (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    index_id TEXT NOT NULL,
    id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER,
    at INTEGER NOT NULL,
    text_digest TEXT NOT NULL,
    salt BLOB NOT NULL,
    digest TEXT NOT NULL,
    metadata TEXT NOT NULL,
    text TEXT NOT NULL,
    words TEXT
) STRICT;

-- create_indexed_texts: what the index of words has; `words` is empty if that is the text, NULL if it was not made yet
CREATE VIEW indexed_texts AS SELECT row, coalesce(nullif(words, ''), text) AS text FROM documents;

-- create_vectors: the texts as vectors, by each model once, whatever documents have them
CREATE TABLE vectors (
    text_digest TEXT NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (text_digest, model)
) STRICT;

-- create_by_id: a document by its id
CREATE INDEX documents_by_id ON documents (index_id, id);

-- create_by_ordinal: the documents of an index in their order
CREATE INDEX documents_by_ordinal ON documents (index_id, ordinal);

-- create_in_force: which rows show in a generation
CREATE INDEX documents_in_force ON documents (index_id, added, removed);

-- create_by_text: which documents have a text
CREATE INDEX documents_by_text ON documents (text_digest);

-- create_words: the words of the texts
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = indexed_texts, content_rowid = row, tokenize = 'unicode61 remove_diacritics 2'
);

-- create_words_secure: what is deleted is overwritten
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

-- create_words_added: each row has its words
CREATE TRIGGER words_added AFTER INSERT ON documents BEGIN
    INSERT INTO words (rowid, text) VALUES (new.row, coalesce(nullif(new.words, ''), new.text));
END;

-- create_words_changed: it has others
CREATE TRIGGER words_changed AFTER UPDATE OF words ON documents
WHEN coalesce(nullif(old.words, ''), old.text) IS NOT coalesce(nullif(new.words, ''), new.text) BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.row, coalesce(nullif(old.words, ''), old.text));
    INSERT INTO words (rowid, text) VALUES (new.row, coalesce(nullif(new.words, ''), new.text));
END;

-- create_words_deleted: and takes them with it
CREATE TRIGGER words_deleted AFTER DELETE ON documents BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.row, coalesce(nullif(old.words, ''), old.text));
END;

-- create_vectors_deleted: the last document with a text takes its vectors with it
CREATE TRIGGER vectors_deleted AFTER DELETE ON documents
WHEN NOT EXISTS (SELECT 1 FROM documents WHERE text_digest = old.text_digest) BEGIN
    DELETE FROM vectors WHERE text_digest = old.text_digest;
END;

-- create_generations: of an index, the last that was staged, and that up to which what was removed is gone
CREATE TABLE generations (index_id TEXT PRIMARY KEY, staged INTEGER NOT NULL, settled INTEGER NOT NULL) STRICT;

-- create_graphs: the saved graph of an index: the model of its vectors, how many numbers each has, its file's digest
CREATE TABLE graphs (
    index_id TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    dim INTEGER NOT NULL,
    digest TEXT NOT NULL,
    seal TEXT NOT NULL
) STRICT;

-- layout: how the tables are laid out
PRAGMA user_version;

-- set_layout: they are laid out so
PRAGMA user_version = 4;

-- from_1_by_text: in the first layout a document had its vector itself, and a text as many as there were documents
DROP INDEX documents_by_text;

-- from_1_vectors: of a text by a model one
SELECT text_digest, model, vector FROM documents GROUP BY text_digest, model;

-- from_1_settled: what was said of an index has another table
DROP TABLE settled;

-- from_1_graphs: nothing is in it
DROP TABLE graphs;

-- from_1_model: of which model it is, its index says
ALTER TABLE documents DROP COLUMN model;

-- from_1_vector: and the vector has a table of its own
ALTER TABLE documents DROP COLUMN vector;

-- from_2_graphs: the saved graphs are made again, and sealed
ALTER TABLE graphs ADD COLUMN seal TEXT NOT NULL DEFAULT '';

-- from_2_vectors: vectors behind a row, with their checksums
SELECT rowid, text_digest, model, vector, checksum FROM vectors WHERE rowid > ? ORDER BY rowid LIMIT ?;

-- from_2_seal: a seal in the place of a checksum
UPDATE vectors SET checksum = ? WHERE rowid = ?;

-- from_3_words: the words are made of what the texts are indexed as
ALTER TABLE documents ADD COLUMN words TEXT;

-- from_3_added: which has triggers of its own
DROP TRIGGER words_added;

-- from_3_deleted: both of them
DROP TRIGGER words_deleted;

-- from_3_index: and another index
DROP TABLE words;

-- tables: whether there are any
SELECT name FROM sqlite_schema LIMIT 1;

-- journal: reads go on while it is written
PRAGMA journal_mode = WAL;

-- check: what is wrong with the file
PRAGMA quick_check(1);

-- check_words: fails unless the words are those of the texts
INSERT INTO words (words, rank) VALUES ('integrity-check', 1);

-- make_words: all of them again
INSERT INTO words (words) VALUES ('rebuild');

-- words_behind: texts behind a row, and what they are indexed as
SELECT row, text, words FROM documents WHERE row > ? ORDER BY row LIMIT ?;

-- set_words: what a text is indexed as
UPDATE documents SET words = ? WHERE row = ?;

-- count_without_words: how many texts are indexed as an earlier layout did it
SELECT count(*) FROM documents WHERE words IS NULL;

-- drop_unnamed: rows that no fact names
DELETE FROM documents WHERE index_id = ? AND added > ?;

-- drop_unknown: rows of documents that the log does not know
DELETE FROM documents WHERE index_id = ? AND id NOT IN (SELECT value FROM json_each(?));

-- keep_unnamed: removals that no fact names
UPDATE documents SET removed = NULL WHERE index_id = ? AND removed > ?;

-- indices: every index that has rows
SELECT DISTINCT index_id FROM documents;

-- whole: after the sweep, the last generation of each index and how many documents it has
SELECT index_id, staged, (SELECT count(*) FROM documents WHERE documents.index_id = generations.index_id)
FROM generations;

-- set_staged: a generation is staged
INSERT INTO generations VALUES (?1, ?2, 0) ON CONFLICT (index_id) DO UPDATE SET staged = ?2;

-- remove: the versions in force of a list of documents end with a generation
UPDATE documents SET removed = ? WHERE index_id = ? AND removed IS NULL AND id IN (SELECT value FROM json_each(?));

-- remove_all: those of all documents
UPDATE documents SET removed = ? WHERE index_id = ? AND removed IS NULL;

-- add: a version of a document, in the place of the one before it or at the end
INSERT INTO documents
    (index_id, id, added, at, text_digest, salt, digest, metadata, text, words, ordinal)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, coalesce(
    (SELECT ordinal FROM documents WHERE index_id = ?1 AND id = ?2 AND removed = ?3),
    (SELECT max(ordinal) FROM documents WHERE index_id = ?1) + 1,
    1
);

-- keep_vector: the vector of a text, if a document has the text
INSERT INTO vectors SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM documents WHERE text_digest = ?1)
ON CONFLICT DO UPDATE SET vector = ?3, checksum = ?4;

-- drop_models: the vectors of all models but these
DELETE FROM vectors WHERE model NOT IN (SELECT value FROM json_each(?));

-- settle: what was removed up to a generation goes
DELETE FROM documents WHERE index_id = ? AND removed <= ?;

-- set_settled: a read of an earlier generation would miss it
UPDATE generations SET settled = ?2 WHERE index_id = ?1;

-- settled: up to which generation
SELECT settled FROM generations WHERE index_id = ?;

-- forget_settled: no read of an earlier life is under way
UPDATE generations SET settled = 0;

-- forget_indices: all but these are gone
DELETE FROM generations WHERE index_id NOT IN (SELECT value FROM json_each(?));

-- embedded: the vectors of texts that were embedded before
SELECT text_digest, vector, checksum FROM vectors WHERE model = ? AND text_digest IN (SELECT value FROM json_each(?));

-- unembedded: texts of an index that the model has not embedded
SELECT DISTINCT text, text_digest FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1)
    AND NOT EXISTS (SELECT 1 FROM vectors WHERE text_digest = documents.text_digest AND model = ?3)
LIMIT ?4;

-- count_unembedded: documents of an index with such texts
SELECT count(*) FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1)
    AND NOT EXISTS (SELECT 1 FROM vectors WHERE text_digest = documents.text_digest AND model = ?3);

-- rows_embedded: rows whose texts the model has embedded
SELECT row FROM documents JOIN vectors USING (text_digest)
WHERE model = ? AND row IN (SELECT value FROM json_each(?));

-- document: one document
SELECT id, text, metadata, salt, digest FROM documents
WHERE index_id = ?1 AND id = ?2 AND added <= ?3 AND ifnull(removed > ?3, 1);

-- ids: of every document of an index
SELECT id FROM documents WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1);

-- all_documents: every document of an index, and the digest of the text whose vector finds it
SELECT id, text, metadata, salt, digest, text_digest FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1) ORDER BY row;

-- all_vectors: every document of an index, and the vector of its text by a model, if there is one
SELECT id, documents.text_digest, vector, checksum FROM documents
LEFT JOIN vectors ON vectors.text_digest = documents.text_digest AND model = ?3
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1) ORDER BY row;

-- page: documents in their order behind a place
SELECT id, text, metadata, salt, digest, ordinal FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1) AND ordinal > ?3 ORDER BY ordinal LIMIT ?4 OFFSET ?5;

-- before: how many documents lie up to a place, and how many there are
SELECT count(*) FILTER (WHERE ordinal <= ?3), count(*) FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1);

-- size: the bytes of all texts
SELECT ifnull(sum(octet_length(text)), 0) FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1);

-- rows: the rows of an index
SELECT row FROM documents
WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1);

-- vectors: the vectors of rows, in their order
SELECT text_digest, vector, checksum FROM documents JOIN vectors USING (text_digest)
WHERE model = ? AND row IN (SELECT value FROM json_each(?)) ORDER BY row;

-- matching: rows of an index whose metadata say so, condition by condition `[name, value, kind, kind]`
SELECT row FROM documents WHERE index_id = ?1 AND added <= ?2 AND ifnull(removed > ?2, 1) AND NOT EXISTS (
    SELECT 1 FROM json_each(?3) AS wanted WHERE NOT EXISTS (
        SELECT 1 FROM json_each(documents.metadata) AS said
        WHERE said.key = wanted.value ->> 0 AND said.atom IS wanted.value ->> 1
            AND said.type IN (wanted.value ->> 2, wanted.value ->> 3)
    )
);

-- with_words: the rows of all indices that have any of the words, the most telling first
SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rank;

-- scores_by_words: the same of some rows; the plus sign keeps SQLite from asking FTS5 once a row
SELECT rowid, -rank FROM words WHERE words MATCH ? AND +rowid IN (SELECT value FROM json_each(?));

-- count_with_word: how many rows of all indices have a word
SELECT count(*) FROM words WHERE words MATCH ?;

-- count_texts: how many rows there are
SELECT count(*) FROM documents;

-- found: documents by their rows
SELECT row, id, text, metadata, salt, digest FROM documents WHERE row IN (SELECT value FROM json_each(?));

-- graphs: the saved graphs
SELECT index_id, model, dim, digest, seal FROM graphs;

-- set_graph: a graph was saved
INSERT OR REPLACE INTO graphs VALUES (?, ?, ?, ?, ?);
