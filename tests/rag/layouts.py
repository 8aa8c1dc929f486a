"""Files of the library as earlier versions wrote them, made of those that this one writes."""

from __future__ import annotations

import re
from typing import Final

from organism.sqlite.driver import Connection

THIRD: Final = """
DROP TRIGGER words_added;
DROP TRIGGER words_changed;
DROP TRIGGER words_deleted;
DROP TABLE words;
DROP VIEW indexed_texts;
ALTER TABLE documents DROP COLUMN words;
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = documents, content_rowid = row, tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER words_added AFTER INSERT ON documents BEGIN
    INSERT INTO words (rowid, text) VALUES (new.row, new.text); END;
CREATE TRIGGER words_deleted AFTER DELETE ON documents BEGIN
    INSERT INTO words (words, rowid, text) VALUES ('delete', old.row, old.text); END;
INSERT INTO words (words) VALUES ('rebuild');
PRAGMA user_version = 3;
"""


def make_third(connection: Connection) -> None:
    """Texts are indexed as they are."""
    for statement in re.split(r";\n(?! )", THIRD):
        if statement.strip():
            connection.execute(statement)


def make_second(connection: Connection) -> None:
    """Besides, nothing seals a graph."""
    make_third(connection)
    connection.execute("ALTER TABLE graphs DROP COLUMN seal")
    connection.execute("PRAGMA user_version = 2")
