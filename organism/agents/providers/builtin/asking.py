"""What a message asks: its requests, one by one, apart from the material that they are about."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from organism.agents.providers.builtin.lexicon import ASKING, COMMANDS, NEGATIONS, POLITE, QUESTION_WORDS, SILENT, named
from organism.agents.providers.builtin.words import Sentence, Word, plain, sentence, sentences_of

Mood = Literal["question", "command", "statement"]

LONG_CHARS: Final = 600
"""In a longer message only the first and the last paragraph ask; what is between them is material."""
MAX_CLAUSES: Final = 40
MAX_CLAUSE_CHARS: Final = 2000
MAX_LEAD_WORDS: Final = 4
MAX_FIRST_CHARS: Final = 40
MAX_SPLIT_WORDS: Final = 200
"""A sentence is not looked through for more requests beyond so many words."""

_FENCE: Final = re.compile(r"```[^\n`]{0,200}\n|<(\w[\w-]{0,40})(?:\s[^<>\n]{0,200})?>")
_QUOTED: Final = re.compile(
    r"\"([^\"\n]+)\"|“([^”\n]+)”|„([^“”\n]+)[“”]|«([^»\n]+)»|(?<!\w)'([^'\n]+)'(?!\w)|`([^`\n]+)`"
)
_BREAK: Final = re.compile(r"[,;:–—(]")
_HEAD: Final = re.compile(
    r"\b(?:go ahead and|feel free to|be so kind (?:and|as to)|make sure (?:to|you)|i(?:'d| would) (?:like|love) you to|"
    r"i (?:want|need) you to|(?:may|can) i ask you to|would you mind|do you mind|"
    r"it would be (?:great|nice) if you could|"
    r"sei (?:doch )?so (?:gut|nett|lieb)(?:,)? und|(?:darf|kann) ich dich bitten,)\s+",
    re.IGNORECASE,
)
"""What only makes a request polite: at its beginning, and at its end."""
_TAIL: Final = re.compile(
    r",?\s(?:if you (?:would|could|can|don't mind|please|like|have a (?:second|minute|moment))|"
    r"if (?:that's|it's)? ?possible|"
    r"when you (?:can|get a chance|have a (?:second|minute|moment))|wenn(?:'s| es)? (?:geht|möglich ist)|"
    r"(?:wenn|falls) möglich|wenn du (?:so )?(?:nett|lieb|gut|freundlich|magst|kannst|willst|möchtest|zeit hast)"
    r"(?: (?:wärst|bist|wärest|sein könntest))?|falls du (?:kannst|magst|zeit hast))(?=\s*[.!?]*\s*$)",
    re.IGNORECASE,
)
_ASKING_WHAT: Final = frozenset({"what", "whats", "how", "was", "wie", "wieviel"})
_NEEDING: Final = named("needing")
_PAUSE: Final = re.compile(r"[,;:–—](?=\s)")
_SPEAKING: Final = (" i ", " we ", " ich ", " wir ", " im ", " were ", " ive ")
_WANTING: Final = named("wanting")
_JOINING: Final = named("joining")
_WISHES: Final = named("wishes")
_KNOWING: Final = named("knowing")
_PLEASE: Final = named("please")
_PARTICLES: Final = named("particles")
_NO_NEGATION: Final = named("no_negation")


@dataclass(frozen=True, slots=True)
class Clause:
    """One request, or one thing told. ``bare`` is its text with blanks for what stands in quotes.

    Its words stand where they do in its own text.
    """

    text: str
    bare: str
    words: tuple[Word, ...]
    mood: Mood

    @property
    def asks(self) -> bool:
        return self.mood != "statement"

    @property
    def form(self) -> str:
        """Its plain words, with a blank around each."""
        return f" {' '.join(word.plain for word in self.words)} "

    @property
    def verb(self) -> str:
        """The verb of a German command in one word: ``umrechne`` of ``rechne … um``; empty where there is none."""
        words = [word for word in self.words if not self.bare[word.start].isspace()]
        first = next((word.plain for word in words if word.plain not in POLITE), "")
        is_last = bool(words) and not self.text[words[-1].end :].strip().strip(".!?,").partition(":")[0]
        last = words[-1].plain if is_last else ""
        return f"{last}{first}" if last in _PARTICLES and first != last else ""

    @property
    def is_negated(self) -> bool:
        """Whether it says that something shall not be done."""
        return any(map(_denies, _PAUSE.split(self.text)))


@dataclass(frozen=True, slots=True)
class Asked:
    """A message: what it asks and tells, and the material it brings."""

    text: str
    clauses: tuple[Clause, ...]
    material: str


def _denies(text: str) -> bool:
    """Whether a part of a clause says ``not``, and does not only tell of the speaker: ``I don't need it any more``."""
    form = f" {' '.join(word.plain for word in sentence(text).words)} "
    for harmless in _NO_NEGATION:
        form = form.replace(f" {harmless} ", " ")
    is_of_speaker = form.startswith(_SPEAKING) and not any(f" {word} " in form for word in _WANTING)
    return not is_of_speaker and any(f" {word} " in form for word in NEGATIONS)


def asked(text: str) -> Asked:
    """Read a message of a user."""
    asking, material = _parted(text)
    asking = _TAIL.sub("", _HEAD.sub("", asking))
    masked = _QUOTED.sub(lambda match: "x" * len(match.group()), asking)
    clauses = [clause for found in sentences_of(asking, masked)[:MAX_CLAUSES] for clause in _clauses(found)]
    return Asked(text, tuple(clauses[:MAX_CLAUSES]), material)


def quoted(text: str) -> list[str]:
    """What stands in quotes."""
    return [next(filter(None, match.groups())).strip() for match in _QUOTED.finditer(text)]


def quotes_in(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Where quotes stand, their marks included, and what stands in them."""
    return ((match.span(), next(filter(None, match.groups())).strip()) for match in _QUOTED.finditer(text))


def _parted(text: str) -> tuple[str, str]:
    """What asks, and what is only brought along: fenced, marked by tags, behind a colon, or in the middle."""
    rest, material = _unfenced(text)
    head, colon, body = rest.partition(":\n")
    if colon and body.strip() and len(head) < LONG_CHARS:
        last = body.strip().rpartition("\n\n")[2]
        keeps = last.rstrip().endswith("?") and last.strip() != body.strip()
        material.append(body.removesuffix(last) if keeps else body)
        return f"{head}.\n\n{last if keeps else ''}", "\n".join(material).strip()
    command, found, behind = _inline(rest)
    if found:
        return command, "\n".join((*material, behind)).strip()
    paragraphs = [part for part in re.split(r"\n\s*\n", rest) if part.strip()]
    if len(rest) > LONG_CHARS and len(paragraphs) > 1:
        material += paragraphs[1:-1]
        return f"{_edge(paragraphs[0])}\n\n{_edge(paragraphs[-1])}", "\n\n".join(
            (*material, paragraphs[0], paragraphs[-1])
        )
    return rest, "\n".join(material).strip()


def _unfenced(text: str) -> tuple[str, list[str]]:
    """The text without what stands in fences or between tags, and that."""
    outside, inside, at = list[str](), list[str](), 0
    unclosed: set[str] = set()
    while (match := _FENCE.search(text, at)) is not None:
        closing = match.expand(r"</\1") if match.group(1) else "```"
        end = text.find(closing, match.end()) if closing not in unclosed else -1
        if end < 0:
            unclosed.add(closing)
            outside.append(text[at : match.end()])
            at = match.end()
            continue
        outside += [text[at : match.start()], "\n\n"]
        inside.append(text[match.end() : end])
        at = end + len(closing)
    return "".join((*outside, text[at:])), inside


def _edge(paragraph: str) -> str:
    """Of a long paragraph, the sentences at its ends."""
    found = sentences_of(paragraph) if len(paragraph) > LONG_CHARS else []
    return f"{found[0].text} {found[-1].text}" if len(found) > 1 else paragraph


_ON_TEXT: Final = re.compile(
    r"\s*(?:(?:please|bitte|can you|could you|kannst du)\s+)?(?:summari[sz]e|shorten|translate|extract|classify|"
    r"rewrite|rephrase|condense|fasse?|übersetze?|extrahiere|klassifiziere|kürze)\b[^\n:.?!]{0,80}:\s*",
    re.IGNORECASE,
)


def _inline(text: str) -> tuple[str, bool, str]:
    """``Summarise this: …``: a command on the text behind its colon."""
    match = _ON_TEXT.match(text)
    if match is None or len(text) - match.end() < 20:  # noqa: PLR2004 - shorter is no text to work on
        return text, False, ""
    return match.group().rstrip(": \n") + ".", True, text[match.end() :]


def _clauses(found: Sentence) -> Iterator[Clause]:
    """The sentence, or its parts where another question or command begins; of a very long one only its beginning."""
    if len(found.text) > MAX_CLAUSE_CHARS:
        found = sentence(found.text[:MAX_CLAUSE_CHARS])
    begins, last = [0], 0
    inside = [(match.start() + found.start, match.end() + found.start) for match in _QUOTED.finditer(found.text)]
    for at in range(1, min(len(found.words), MAX_SPLIT_WORDS)):
        if not _is_inside(found.words[at], inside) and _begins_clause(found, begins[-1], at):
            begins.append(at)
    for behind in (*begins[1:], len(found.words)):
        end = found.words[behind].start - found.start if behind < len(found.words) else len(found.text)
        text = found.text[last:end]
        yield _clause(text, is_question=found.is_question)
        last = end


def _is_inside(word: Word, spans: Sequence[tuple[int, int]]) -> bool:
    at = bisect_right(spans, (word.start, word.start)) - 1
    return at >= 0 and spans[at][0] <= word.start < spans[at][1]


def _begins_clause(found: Sentence, first: int, at: int) -> bool:
    """Whether a request begins with this word: behind a comma or an ``and``, and not as part of the one before."""
    words, offset = found.words, found.start
    gap = found.text[words[at - 1].end - offset : words[at].start - offset]
    if not _BREAK.search(gap) and words[at].plain not in _JOINING:
        return False
    ahead = at
    while ahead < len(words) and (words[ahead].plain in _JOINING or words[ahead].plain in POLITE):
        ahead += 1
    if ahead >= len(words) or ahead - at > 3 or _is_empty(words[first:at]):  # noqa: PLR2004 - polite words in a row
        return False
    form = words[ahead].plain
    begin = next((word.plain for word in words[first:at] if word.plain not in POLITE), "")
    if any(word.plain in _PLEASE for word in words[at:ahead]) and ":" not in gap and begin not in _LEADING:
        return not form.isdigit()
    following = words[ahead : ahead + MAX_LEAD_WORDS * 2]
    is_apart = not (_leads_in(words[first:at]) or _is_told_sum(words[first:at], following))
    return is_apart and _begins_request(found, first, at, ahead)


def _begins_request(found: Sentence, first: int, at: int, ahead: int) -> bool:
    """Whether the word ahead asks or orders by itself."""
    words, offset = found.words, found.start
    gap = found.text[words[at - 1].end - offset : words[at].start - offset]
    form = words[ahead].plain
    asks = found.is_question or _mood(words[first:at], "") != "statement"
    if form in QUESTION_WORDS:
        return asks
    following = words[ahead + 1].plain if ahead + 1 < len(words) else ""
    if form in COMMANDS and form not in ASKING:
        tells_both = not asks and ahead == at + 1 and following not in _TO_ME  # "I like tea and read books"
        is_matter = ":" in gap and _mood(words[first:at], "") == "command"  # "Create a reminder: buy milk"
        return (
            not (tells_both or is_matter)
            and following not in ("", "is", "ist", "are")
            and words[ahead - 1].plain
            not in (
                "to",
                "zu",
                "i",
                "we",
                "they",
            )
        )
    return form in ASKING and asks and following in _SUBJECTS


def _is_told_sum(told: Sequence[Word], asking: Sequence[Word]) -> bool:
    """Whether something is told and asked at once: ``I had 9 and gave 4, how many are left``."""
    return any(word.plain in _REST for word in asking) and _mood(told, "") == "statement"


_REST: Final = named("left_over") | named("each_one")
_TO_ME: Final = named("to_me")
_SUBJECTS: Final = named("subjects")


def _is_empty(words: Sequence[Word]) -> bool:
    """Whether only the frame of a request stands here: ``tell me``, ``do you know``."""
    return all(
        word.is_silent or word.plain in POLITE or word.plain in COMMANDS or word.plain in _KNOWING for word in words
    )


def _leads_in(words: Sequence[Word]) -> bool:
    """Whether these words only lead to a request: ``in Tokyo, what …``, ``if I add 3 to 4, what …``."""
    first = next((word.plain for word in words if word.plain not in POLITE and word.plain not in _JOINING), "")
    return first in _LEADING or (len(words) <= MAX_LEAD_WORDS and _mood(words, "") == "statement")


_LEADING: Final = named("leading")


def _clause(text: str, *, is_question: bool) -> Clause:
    made = sentence(text.strip(" \t\n").lstrip(",;:–— \t\n"))
    bare = _QUOTED.sub(lambda match: " " * len(match.group()), made.text)
    mood = "question" if is_question or made.is_question or _asks_behind(made) else _mood(made.words, made.text)
    return Clause(made.text, bare, made.words, mood)


def _asks_behind(made: Sentence) -> bool:
    """Whether it asks behind what only leads to it: ``quick question, what is 3 + 4``."""
    before, comma, behind = made.text.partition(", ")
    is_lead = len(before.split()) <= MAX_LEAD_WORDS or any(sign.isdigit() for sign in before)
    first = behind[:MAX_FIRST_CHARS].split(" ", 1)[0]
    return bool(comma) and is_lead and plain(first).replace("'", "") in _ASKING_WHAT


def clause_of(text: str) -> Clause:
    """A text as one request."""
    return _clause(text, is_question=text.rstrip().endswith("?"))


def part_of(clause: Clause, start: int, end: int) -> Clause:
    """A part of a clause as a request of its own."""
    made = sentence(clause.text[start:end].strip(" \t\n,;:"))
    bare = _QUOTED.sub(lambda match: " " * len(match.group()), made.text)
    return Clause(made.text, bare, made.words, "command" if clause.mood == "statement" else clause.mood)


def _mood(words: Sequence[Word], text: str) -> Mood:
    ahead = 0
    while ahead < len(words) and words[ahead].plain in POLITE:
        ahead += 1
    form = f" {' '.join(word.plain for word in words)} "
    first = words[ahead].plain if ahead < len(words) else ""
    if first in QUESTION_WORDS or text.rstrip().endswith("?"):
        return "question"
    if first in COMMANDS or first in _NEEDING or any(f" {wish} " in form for wish in _WISHES):
        return "command"
    if first in ASKING and ahead + 1 < len(words) and words[ahead + 1].plain in _SUBJECTS:
        return "question"
    if any(word.plain in _PLEASE for word in words) or (first == "" and bool(words)):
        return "command"
    return "statement"


def is_frame(form: str) -> bool:
    """Whether a plain word only frames a request, or says nothing of the matter."""
    return form in SILENT or form in POLITE or form in COMMANDS or form in ASKING or form in _WISHING


_WISHING: Final = frozenset(word for wish in _WISHES for word in wish.split()) | _KNOWING | _PLEASE
