"""A server with a library."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from organism.bootstrap import Parts
from organism.rag.hashed_words import HashedWords
from tests.server.library.asking import LibraryClient
from tests.server.served import served


@pytest.fixture
async def library() -> AsyncIterator[LibraryClient]:
    """The library of the default tenant, in memory."""
    words = HashedWords("plain", "other")
    async with served(parts=Parts(embeddings=words)) as server:
        yield LibraryClient(server, words)
