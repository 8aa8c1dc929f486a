"""A librarian: it answers a question from the passages of an index, with whatever model its listener has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from organism import HandlerMetadata, HandlerResponse, ToolError

PROMPT: Final = (Path(__file__).parent / "prompts" / "answer_from_passages.md").read_text(encoding="utf-8")
NOTHING: Final = "The index has no passage on this."


@dataclass
class LibraryQuery:
    """Answer a question from an index of the library, by at most ``top_k`` passages, 1 to 50."""

    index: str
    question: str
    top_k: int = 5


@dataclass
class LibraryPassage:
    """What the answer rests on: a document by its id, as it was found. The higher the score the better."""

    id: str
    text: str
    score: float


@dataclass
class LibraryAnswer:
    """The answer, which names the passages by their ids in brackets, and the passages, best first."""

    answer: str
    passages: list[LibraryPassage]


async def answer(payload: LibraryQuery, metadata: HandlerMetadata) -> HandlerResponse:
    """Look the question up and answer it; what the library refuses is the reply."""
    query = {"index_id": payload.index, "query": payload.question, "top_k": payload.top_k}
    found = await metadata.ask("rag_query", query)
    if isinstance(found, ToolError):
        return HandlerResponse.respond(found)
    passages = [LibraryPassage(each.id, each.text, each.score) for each in found.results]
    if not passages:
        return HandlerResponse.respond(LibraryAnswer(NOTHING, []))
    # A passage is one line, so that none can look like two, or like the question.
    lines = [f"[{each.id}] {' '.join(each.text.split())}" for each in passages]
    asked = [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": "\n".join([*lines, "", payload.question])},
    ]
    completion = await metadata.complete(asked)
    return HandlerResponse.respond(LibraryAnswer(completion.text.strip(), passages))
