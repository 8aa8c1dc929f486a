"""The offline model: a stand-in without network, key or weights. The first rule that fits gives the answer.

Arguments come from the user's own words, never from instructions or results of tools.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, Final

from organism.agents.conversation import split_fences, unfenced
from organism.agents.providers import messages
from organism.agents.providers import offline_words as words
from organism.model.arithmetic import is_arithmetic
from organism.model.completion import ChatMessage, Finish, ModelRequest, Part, TextDelta, ToolCall, Usage
from organism.model.tool import ToolSpec

Call = tuple[str, dict[str, Any]]  # a tool's name and its arguments

_PIECE: Final = re.compile(r"(?:\S+\s*){1,4}|\s+")
LONG_TOKENS: Final = 1_000  # a longer conversation is read in a thread, so that it does not block the loop
SHORT_WORDS: Final = 4  # a message with no more words is an order about what was said before


class Offline:
    """Gives the same answer to the same request; tokens are estimated."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        tokens = messages.tokens_of_request(request)
        whole, calls = await asyncio.to_thread(reply, request) if tokens > LONG_TOKENS else reply(request)
        text = whole if request.max_tokens is None else whole[: request.max_tokens * messages.CHARS_PER_TOKEN]
        for piece in _PIECE.findall(text):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        made = [ToolCall(f"call_{len(request.messages)}_{at}", *call) for at, call in enumerate(calls, 1)]
        for call in made:
            yield call
        yield Usage(tokens, messages.tokens_of(text) + sum(map(messages.tokens_of_call, made)))
        yield Finish("tool_calls" if made else "stop" if text == whole else "length")

    async def close(self) -> None:
        """See ``Provider``: nothing is open."""


def reply(request: ModelRequest) -> tuple[str, list[Call]]:
    """The text of the answer, or the tools to call."""
    turns = [(str(message.get("role")), plain(message)) for message in request.messages]
    newest = max((at for at, (role, _) in enumerate(turns) if role == "user"), default=len(turns))
    message = "".join(text for _, text in turns[newest : newest + 1])
    quoted, rest = split_fences(message)
    message = plain({"content": rest})
    before = [text for role, text in turns[:newest] if role not in messages.SYSTEM_ROLES]
    earlier = (text for role, text in reversed(turns[:newest]) if role == "user")
    system = "\n".join(text for role, text in turns if role in messages.SYSTEM_ROLES)
    language = language_of([message, *earlier, system])
    results = _results(request.messages[newest + 1 :], language)
    if not results and (calls := _calls(message, request.tools, language)):
        return "", calls
    if request.response_format and request.response_format.get("type") != "text":
        material = before if len(message.split()) <= SHORT_WORDS else []
        return _filled(request.response_format, "\n".join([*material, *results, message]), request.max_tokens), []
    said = "\n".join(filter(None, results)) or _summary(message, system, before)
    text = said or _quote(message, [*before, *quoted], language)
    return text or words.STAND_IN[language], []


def _filled(response_format: Mapping[str, Any], text: str, max_tokens: int | None) -> str:
    """JSON for the schema, however it is wrapped; its free texts are shorter where the answer must be."""
    wrapped = response_format.get("json_schema", response_format)
    schema = {"type": "object"} if wrapped.get("type") == "json_object" else wrapped.get("schema", wrapped)
    text_chars = 400 if max_tokens is None else min(400, max_tokens // 2)
    return json.dumps(Filler(text, text_chars).filled(schema), ensure_ascii=False)


def _summary(message: str, system: str, before: Sequence[str]) -> str:
    """A quarter of the sentences: those of the message, else those of what was said before."""
    sentences = sentences_of(message) or [""]
    order = next((each for each in (sentences[0], sentences[-1]) if words.SUMMARISE.search(each)), None)
    if order is None and not (words.SUMMARISE.search(system) and len(sentences) > 1):
        return ""
    own = [*(order or "").partition(": ")[2:], *(each for each in sentences if each != order)]
    text = "\n".join(own).strip() or "\n".join(before)
    return " ".join(key_sentences(text, -(-len(sentences_of(text)) // 4)))


def _quote(message: str, before: Sequence[str], language: str) -> str:
    """The sentence that answers the question: of the message itself, or of what was said before it."""
    sentences = sentences_of(message)
    asked = " ".join(each for each in sentences if each.endswith("?"))
    found = best_sentence(asked, [*before, *(each for each in sentences if each not in asked)])
    return words.QUOTED[language].format(found) if found else ""


def _calls(message: str, tools: Sequence[ToolSpec], language: str) -> list[Call]:
    """The calls that the message asks for, clause by clause."""
    calls: list[Call] = []
    for clause in () if words.NO_TOOLS.search(message) else words.CLAUSE_END.split(message)[:50]:
        rules = () if words.NEGATED.search(clause) else (_computed, _ordered, _looked_up, _searched)
        calls += next(filter(None, (rule(tool, clause, language) for rule in rules for tool in tools)), [])
    return [call for at, call in enumerate(calls) if call not in calls[:at]]


def _computed(tool: ToolSpec, clause: str, language: str) -> list[Call]:
    """A sum, or the time somewhere."""
    text, about = _only_text(tool), f"{tool.name} {tool.description[:80]}"
    if text and words.SUM_TOOL.search(about):
        return [(tool.name, {text: each}) for each in sums_of(clause, language)]
    zones, is_elsewhere = zones_of(clause), re.search(r"\bin [A-ZÄÖÜ]", clause)
    if not words.TIME_TOOL.search(about) or not words.ASKS_TIME.search(clause) or (is_elsewhere and not zones):
        return []
    zone = next((name for name in tool.parameters.get("properties", {}) if "zone" in name), "")
    zones = zones or ["UTC"] * (zone in tool.parameters.get("required", ()))
    return [(tool.name, {zone: each}) for each in zones] if zone and zones else [(tool.name, {})]


def _ordered(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """An order that begins with the tool's name (``delete the file …``) and says what the tool requires."""
    name, order = name_words(tool.name), [word for word in words_of(clause) if word not in words.POLITE]
    if order[:1] != name[:1] or not set(name) <= set(order):
        return []
    filler, text = Filler(clause), _only_text(tool)
    found = {key: filler.found(schema, key) for key, schema in tool.parameters.get("properties", {}).items()}
    if text and found[text] is None:
        found[text] = clause[max(clause.lower().rfind(word) + len(word) for word in name) :].strip(" :?!.") or None
    given = {key: value for key, value in found.items() if value is not None}
    return [(tool.name, given)] if given.keys() >= set(tool.parameters.get("required", ())) else []


def _looked_up(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """What the clause asks about, unless that is the time, the user or the model."""
    text, found = _only_text(tool), words.ASKS_LOOK_UP.search(clause)
    if not text or found is None or words.OWN.search(found["what"]) or words.ASKS_TIME.search(clause):
        return []
    fits = words.LOOK_UP_TOOL.search(f"{tool.name} {tool.description[:80]}")
    return [(tool.name, {text: found["what"].strip(" ?!.")})] if fits else []


def _searched(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """A question, put to each index that the tool names."""
    index = tool.parameters.get("properties", {}).get("index_id", {})
    is_asked = clause.endswith("?") and not words.ASKS_TIME.search(clause)
    return [(tool.name, {"index_id": each, "query": clause}) for each in index.get("enum", ()) if is_asked]


def _only_text(tool: ToolSpec) -> str | None:
    """The one text that a tool takes: its only required parameter, or its only one."""
    fields = tool.parameters.get("properties", {})
    names = tool.parameters.get("required") or [*fields]
    return names[0] if len(names) == 1 and fields.get(names[0], {}).get("type") == "string" else None


def _results(since: Sequence[ChatMessage], language: str) -> list[str]:
    """What the tools have answered since the user spoke, each as a sentence."""
    calls = {call.get("id"): call.get("function", {}) for message in since for call in message.get("tool_calls") or ()}
    results = [message for message in since if message.get("role") == "tool"]
    return [_result(calls.get(each.get("tool_call_id"), {}), plain(each), language) for each in results]


def _result(call: Mapping[str, Any], text: str, language: str) -> str:
    value, given, name = parsed(text), parsed(call.get("arguments") or ""), call.get("name", "tool")
    error = value if isinstance(value, dict) and value.keys() in ({"error"}, {"code", "message"}) else None
    if error is not None:
        return words.FAILED[language].format(name, _spoken(error.get("error", error)))
    if isinstance(value, dict) and value.keys() >= {"index_id", "results"}:
        return _cited(given, value["results"], language)
    said = _spoken(value)
    if isinstance(given, dict) and "expression" in given:
        return words.IS[language].format(given["expression"], said)
    return " ".join(key_sentences(said, 5)) or words.NOTHING[language].format(name)


def _cited(asked: Any, passages: Sequence[Mapping[str, Any]], language: str) -> str:
    """The sentence that answers the query, and the passage that it stands in."""
    best = [(best_sentence(str(asked.get("query")), [each["text"]]), each["id"]) for each in passages]
    return next((f"{words.QUOTED[language].format(said)} [{source}]" for said, source in best if said), "")


def _spoken(value: Any) -> str:
    """A JSON value as people read it: of an object the entry that says most, else all."""
    if isinstance(value, dict) and value.keys() >= {"zone", "weekday", "date", "time"}:
        return words.MOMENT.format(**value)
    if isinstance(value, dict):
        telling = next((value[key] for key in words.TELLING if value.get(key) not in (None, "")), None)
        return (
            _spoken(telling)
            if telling is not None
            else ", ".join(f"{key}: {_spoken(each)}" for key, each in value.items())
        )
    return "\n".join(map(_spoken, value)) if isinstance(value, list) else "" if value is None else str(value)


# -- schemas

MAX_ITEMS: Final = 20
_ENTRY: Final = re.compile(r"^([\w.-]+) = ([\"\[{\d-].*|true|false)$", re.MULTILINE)  # as AgentStack composes it
_VALUE: Final = re.compile(r"(?<![\w.,-])-?\d{1,15}(?:,\d{3})*(?:\.\d+)?(?![\d-])")
_SHAPES: Final = {"email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "url": r"https?://[^\s\"<>]+", "date": r"\d{4}-\d\d-\d\d"}
"""What values look like, by a word of the field's name."""


class Filler:
    """Fills schemas from one text; ``text_chars`` bounds the free texts in them. It follows no references."""

    def __init__(self, text: str, text_chars: int = 400) -> None:
        entries = {key: str(parsed(value)) for key, value in _ENTRY.findall(text)}
        self._text = "\n".join(entries.values()) or text
        self._labels = "\n".join(f"{key}: {value}" for key, value in entries.items()) or text
        self._words = words_of(self._text)
        self._text_chars = text_chars
        self._used: set[int] = set()

    def filled(self, schema: Any, name: str = "") -> Any:
        """A value for a field of that name: found, else a blank that fits."""
        found = self.found(schema, name)
        return self._blank(_one_type(schema), name) if found is None else found

    def found(self, schema: Any, name: str) -> Any:  # noqa: PLR0911 - one a type
        """The value that the text gives; None if it gives none."""
        schema = _one_type(schema)
        match schema.get("type"):
            case _ if schema.get("enum"):
                best = max(schema["enum"], key=lambda value: _share(value, self._words))
                return best if _share(best, self._words) else None
            case "object":
                needed, fields = schema.get("required", ()), schema.get("properties", {}).items()
                values = {key: (self.filled if key in needed else self.found)(each, key) for key, each in fields}
                return {key: value for key, value in values.items() if key in needed or value is not None} or None
            case "array":
                return self._array(_one_type(schema.get("items")), name)[: schema.get("maxItems", MAX_ITEMS)] or None
            case "integer" | "number":
                return self._number(schema, name)
            case "boolean":
                naming = [said for said in map(words_of, sentences_of(self._text)) if _share(name, said) == 1]
                return not words.NO.intersection(naming[0]) if naming else None
            case "string":
                found = self._string(name)
                return found and found[: schema.get("maxLength")]
        return schema.get("const")

    def _array(self, items: Mapping[str, Any], name: str) -> list[Any]:
        if items.get("enum"):
            return [value for value in items["enum"] if _share(value, self._words) == 1]
        if items.get("type") == "string":
            listed = re.split(r",|\band\b|\bund\b", self._labelled(name, r"[^.;\n]+") or "")
            return [each.strip() for each in listed if each.strip()]
        most = MAX_ITEMS if items.get("type") in ("integer", "number") else 1
        return [value for _ in range(most) if (value := self.found(items, name)) is not None]

    def _number(self, schema: Mapping[str, Any], name: str) -> Any:
        """Of the unused numbers that fit, the one nearest to the field's name; without that, the first."""
        named = re.search("|".join(name_words(name)) or "$", self._labels, re.IGNORECASE)
        fitting = list[tuple[int, int, float]]()
        for found in _VALUE.finditer(self._labels):
            value, away = float(found.group().replace(",", "")), abs(found.start() - named.start()) if named else 0
            is_right = schema.get("minimum", value) <= value <= schema.get("maximum", value)
            if is_right and found.start() not in self._used and (schema["type"] == "number" or value.is_integer()):
                fitting.append((away, found.start(), value))
        _, at, value = min(fitting, default=(0, 0, math.nan))
        self._used.add(at)
        return None if not fitting else int(value) if value.is_integer() else value

    def _string(self, name: str) -> str | None:
        """What has the shape of such a field; else what follows its name, or stands in quotes."""
        for word in _SHAPES.keys() & name_words(name):
            shaped = re.search(_SHAPES[word], self._text)
            return shaped and shaped[0]
        quoted = re.search(r"[\"“„]([^\"“”„\n]+)[\"”“]", self._text)
        return self._labelled(name, r"[^,.;\n]+") or (quoted and quoted[1])

    def _labelled(self, name: str, value: str) -> str | None:
        """What follows the field's name: ``tone: warm``, ``the tone is warm``."""
        label = "[ _-]?".join(name_words(name)) or "$"
        found = re.search(rf"\b{label}\b\s*(?::|=|\bis\b|\bist\b)\s*({value})", self._labels, re.IGNORECASE)
        return found and found[1].strip(' "“”„')

    def _blank(self, schema: Mapping[str, Any], name: str) -> Any:
        """What stands where nothing was found: the default, a neutral value, zero, sentences of the text."""
        if "default" in schema or "const" in schema:
            return schema.get("default", schema.get("const"))
        if schema.get("enum"):
            return next((value for value in words.NEUTRAL if value in schema["enum"]), schema["enum"][0])
        match schema.get("type"):
            case "integer" | "number":
                return max(schema.get("minimum", 0), min(0, schema.get("maximum", 0)))
            case "array":
                return [self.filled(schema.get("items"), name)] * min(schema.get("minItems", 0), MAX_ITEMS)
            case "string" if not _SHAPES.keys() & name_words(name):
                text = " ".join(key_sentences(self._text, 2))[: min(self._text_chars, schema.get("maxLength", 400))]
                return " ".join(text.split()[:8]) if name_words(name)[-1:] in (["title"], ["name"]) else text
        return {"object": {}, "boolean": False, "string": ""}.get(schema.get("type", "null"))


def _one_type(schema: Any) -> Mapping[str, Any]:
    """The schema with one type: of several, or of alternatives, the first; what may be null is null by default."""
    schema = schema if isinstance(schema, Mapping) else {}
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    branches = schema.get("anyOf") or [{"type": kind} for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    chosen: Mapping[str, Any] = next((each for each in branches if each != {"type": "null"}), {})
    return {**({"default": None} if {"type": "null"} in branches else {}), **schema, **chosen}


def name_words(name: str) -> list[str]:
    """The words of ``dueDate``, ``due_date`` or ``AWS_Architect``."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _share(name: Any, said: list[str]) -> float:
    """How much of a name, or of an enum's value, is said."""
    parts = name_words(str(name))
    return sum(max((likeness(part, word) for word in said), default=0) for part in parts) / max(1, len(parts))


# -- texts

PART_CHARS: Final = 4
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+(?=[\"„“(]?[A-ZÄÖÜ\d])|\n+")
_NUMBER: Final = r"\d+(?:[.,_]\d+)*"
_SUM: Final = re.compile(rf"(?:(?:{_NUMBER}|%\s*of\b|[-+*/^%()×÷−]|\bsqrt\b)\s*)+")


def plain(message: ChatMessage) -> str:
    """The text of a message, without the fence around text of others."""
    text = messages.text_of(message.get("content"))
    return fence.text if (fence := unfenced(text.strip())) else text


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def words_of(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def matter(text: str) -> set[str]:
    """The words that say what a text is about."""
    return {word for word in words_of(text) if word not in words.SILENT and len(word) > 1}


def likeness(word: str, other: str) -> float:
    """1 for the same word, less where one begins like the other or is a part of it: ``sport``, ``Lieblingssport``."""
    if word == other or min(len(word), len(other)) < PART_CHARS:
        return float(word == other)
    return 0.9 if word.startswith(other) or other.startswith(word) else 0.8 if word in other or other in word else 0


def language_of(texts: Iterable[str]) -> str:
    """``en`` or ``de``: that of the first text that shows one."""
    for said in map(words_of, texts):
        german, english = (sum(word in words.LANGUAGES[name] for word in said) for name in ("de", "en"))
        if german != english:
            return "de" if german > english else "en"
    return "en"


def sentences_of(text: str) -> list[str]:
    return [found for each in _SENTENCE_END.split(text) if (found := each.strip(" \t-*"))]


def best_sentence(question: str, texts: Iterable[str]) -> str:
    """The newest sentence that says most of what is asked, and at least half of it; empty where none does."""
    asked, best, found = matter(question[:500]), 0.5, ""
    for sentence in chain.from_iterable(map(sentences_of, texts)):
        known = matter(sentence)
        share = sum(any(likeness(word, other) for other in known) for word in asked) / max(1, len(asked))
        if share >= best and known - asked and not sentence.endswith("?"):
            best, found = share, sentence
    return found


def key_sentences(text: str, most: int) -> list[str]:
    """The sentences whose words are the most frequent ones of the text, in its order; the first counts more."""
    sentences = list(dict.fromkeys(sentences_of(text)))
    count = Counter(word for sentence in sentences for word in matter(sentence))
    weights = [sum(count[word] - 1 for word in found) / (len(found) + 3) for found in map(matter, sentences)]
    best = sorted(range(len(sentences)), key=lambda at: weights[at] + (at == 0) / 2, reverse=True)
    return [sentences[at] for at in sorted(best[:most])]


def sums_of(text: str, language: str) -> list[str]:
    """The sums that a clause asks for, as expressions that the calculator takes."""
    written, found = text[:500], list[str]()
    for spoken, sign in words.SPOKEN.items():
        written = re.sub(spoken, sign, written, flags=re.IGNORECASE)
    for run in _SUM.finditer(written):
        is_asked = all(word in words.ASKS_SUM or word[0].isdigit() for word in words_of(written[: run.start()]))
        expression = re.sub(_NUMBER, lambda number: _plain_number(number.group(), language), run.group())
        expression = re.sub(r"\s+", " ", expression).lstrip(" +*/%").rstrip(" +-*/")
        if is_asked and re.search(r"\d.*[-+*/^×÷−%].*\d|sqrt", expression) and is_arithmetic(expression):
            found.append(expression)
    return found


def _plain_number(text: str, language: str) -> str:
    """A number as computers write it: separators of thousands go, and a decimal comma becomes a point."""
    thousands = "." if language == "de" else ","
    is_grouped = re.fullmatch(rf"\d{{1,3}}(?:\{thousands}\d{{3}})+(?:[.,]\d+)?", text)
    return (text.replace(thousands, "") if is_grouped else text).replace(",", ".")


def zones_of(text: str) -> list[str]:
    """The time zones of the places that the text names, in its order."""
    found, parts = list[str](), re.findall(r"\w+", text)
    for at, part in enumerate(parts):
        is_place = part[0].isupper() or parts[at - 1].lower() in ("in", "at", "for", "für")
        places = (" ".join(parts[at : at + length]).lower() for length in (3, 2, 1) if is_place)
        found += [_places()[place] for place in places if place in _places()][:1]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1)
def _places() -> dict[str, str]:
    """All time zones by the place that their name ends with."""
    names = files("tzdata").joinpath("zones").read_text("utf-8").split()
    return {name.rpartition("/")[2].replace("_", " ").lower(): name for name in names} | words.ZONES
