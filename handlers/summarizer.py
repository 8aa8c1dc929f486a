"""A summarizer: it makes short what is long, with whatever model its listener has.

A text that is too long for one call is cut at sensible borders; each part is summarised, then the summaries are, until
one call takes all of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from organism import HandlerMetadata, HandlerResponse, NonRetryable

PART_CHARS: Final = 12_000
"""About 3,000 tokens: half of what the smallest models take, so that prompt and answer have room."""
REQUEST: Final = "Summarise this text:\n\n"
TEXT_PROMPT: Final = (Path(__file__).parent / "prompts" / "summarize.md").read_text(encoding="utf-8")
TALK_PROMPT: Final = (Path(__file__).parent / "prompts" / "summarize_talk.md").read_text(encoding="utf-8")

_BORDERS: Final = ("\n\n", "\n", ". ", " ")
_BLANK_LINES: Final = re.compile(r"\n{3,}")


@dataclass
class Summarize:
    """Make a text short. ``is_talk``: it is a conversation, of which small talk and tool noise may go.

    Without ``model`` the listener's own is called.
    """

    text: str
    is_talk: bool = False
    model: str | None = None


@dataclass
class Summary:
    """The text in short. ``parts`` counts what it was cut into."""

    text: str
    parts: int


class SummaryWithheld(NonRetryable):
    """The model, or its provider, did not give the whole summary of a part: a part of it would pass for the whole."""


async def summarize(payload: Summarize, metadata: HandlerMetadata) -> HandlerResponse:
    """Summarise, part by part where it is long."""
    text = payload.text
    pieces = list(pieces_of(text))
    parts = len(pieces)
    while pieces:
        summaries = [await _summary(piece, payload, metadata) for piece in pieces]
        before, text = text, "\n\n".join(summaries)
        is_short = len(pieces) == 1 or len(text) >= len(before)  # what grows does not get shorter by doing it again
        pieces = [] if is_short else list(pieces_of(text))
    return HandlerResponse.respond(Summary(text.strip(), parts))


async def _summary(text: str, payload: Summarize, metadata: HandlerMetadata) -> str:
    prompt = TALK_PROMPT if payload.is_talk else TEXT_PROMPT
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": REQUEST + text}]
    model = payload.model
    completion = await (metadata.complete(messages) if model is None else metadata.complete(messages, model=model))
    if completion.finish != "stop":
        raise SummaryWithheld(f"The model gave no whole summary ({completion.finish}).")
    return completion.text.strip()


def pieces_of(text: str, most: int = PART_CHARS) -> Iterator[str]:
    """The text in pieces of at most so many characters, cut where paragraphs, lines, sentences or words end."""
    text = _BLANK_LINES.sub("\n\n", text.strip())
    while len(text) > most:
        ends = (text.rfind(border, most // 2, most) + len(border) for border in _BORDERS)
        cut = next((end for end in ends if end > most // 2), most)
        yield text[:cut].strip()
        text = text[cut:].strip()
    if text:
        yield text
