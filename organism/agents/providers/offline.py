"""The offline model: a stand-in without network, key or weights. The first rule that fits gives the answer.

Arguments come from the user's own words, never from instructions or results of tools.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from organism.agents.conversation import split_fences, unfenced
from organism.agents.providers import messages
from organism.agents.providers import offline_words as words
from organism.model.arithmetic import is_arithmetic
from organism.model.completion import ChatMessage, Finish, ModelRequest, Part, TextDelta, ToolCall, Usage
from organism.model.tool import ToolSpec

Call = tuple[str, dict[str, Any]]  # a tool's name and its arguments

LONG_TOKENS: Final = 1_000  # a longer conversation is read in a thread, so that it does not block the loop
RESULT_SENTENCES: Final = 5
FREE_TEXT_CHARS: Final = 400
MAX_ITEMS: Final = 20
PART_CHARS: Final = 4
_PIECE: Final = re.compile(r"(?:\S+\s*){1,4}|\s+")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+(?=[\"„“(]?[A-ZÄÖÜ\d])|\n+")
_NUMBER: Final = r"\d+(?:[.,_]\d+)*"
_SUM: Final = re.compile(rf"(?:(?:{_NUMBER}|%\s*of\b|[-+*/^%()×÷−]|\bsqrt\b)\s*)+")
_ENTRY: Final = re.compile(r"^[\w.-]+ = ([\"\[{\d-].*|true|false)$", re.MULTILINE)  # as AgentStack composes it


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
    quoted, rest = split_fences("".join(text for _, text in turns[newest : newest + 1]))
    message = plain({"content": rest})
    before = [text for role, text in turns[:newest] if role not in messages.SYSTEM_ROLES]
    system = "\n".join(text for role, text in turns if role in messages.SYSTEM_ROLES)
    earlier = (text for role, text in reversed(turns[:newest]) if role == "user")
    language = language_of([message, *earlier, system])
    results = _results(request.messages[newest + 1 :], language)
    if not results and (calls := _calls(message, request.tools, language)):
        return "", calls
    if request.response_format and request.response_format.get("type") != "text":
        return _json(request.response_format, "\n".join([*results, message])), []
    text = "\n".join(results) or _summary(message, system, before) or _quote(message, [*before, *quoted], language)
    return text or words.STAND_IN[language], []


def _summary(message: str, system: str, before: Sequence[str]) -> str:
    """The first quarter of the sentences: those of the message, else those of what was said before."""
    sentences = sentences_of(message) or [""]
    order = next((each for each in (sentences[0], sentences[-1]) if words.SUMMARISE.search(each)), None)
    if order is None and not (words.SUMMARISE.search(system) and len(sentences) > 1):
        return ""
    own = [*(order or "").partition(": ")[2:], *(each for each in sentences if each != order)]
    found = sentences_of("\n".join(own).strip() or "\n".join(before))
    return " ".join(found[: -(-len(found) // 4)])


def _quote(message: str, before: Sequence[str], language: str) -> str:
    """The sentence that answers the question: of the message itself, or of what was said before it."""
    sentences = sentences_of(message)
    asked = " ".join(each for each in sentences if each.endswith("?"))
    found = best_sentence(asked, [*before, *(each for each in sentences if each not in asked)])
    return words.QUOTED[language].format(found) if found else ""


# -- tools


def _calls(message: str, tools: Sequence[ToolSpec], language: str) -> list[Call]:
    """The calls that the message asks for, clause by clause: of each clause the first that a tool plainly fits."""
    calls: list[Call] = []
    for clause in () if words.NO_TOOLS.search(message) else words.CLAUSE_END.split(message)[:50]:
        rules = () if words.NEGATED.search(clause) else (_computed, _timed, _ordered, _looked_up, _searched)
        calls += next(filter(None, (rule(tool, clause, language) for rule in rules for tool in tools)), [])
    return [call for at, call in enumerate(calls) if call not in calls[:at]]


def _computed(tool: ToolSpec, clause: str, language: str) -> list[Call]:
    text = _only_text(tool)
    is_fit = text and words.SUM_TOOL.search(_about(tool))
    return [(tool.name, {text: each}) for each in sums_of(clause, language)] if text and is_fit else []


def _timed(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """The time, there where the clause asks for it."""
    zones, is_elsewhere = zones_of(clause), re.search(r"\bin [A-ZÄÖÜ]", clause)
    is_fit = words.TIME_TOOL.search(_about(tool)) and words.ASKS_TIME.search(clause)
    if not is_fit or (is_elsewhere and not zones):
        return []
    zone = next((name for name in tool.parameters.get("properties", {}) if "zone" in name), "")
    zones = zones or ["UTC"] * (zone in tool.parameters.get("required", ()))
    return [(tool.name, {zone: each}) for each in zones] if zone and zones else [(tool.name, {})]


def _ordered(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """An order that begins with the tool's name (``delete the file …``); what follows is the text that it takes."""
    text, name = _only_text(tool), name_words(tool.name)
    order = [word for word in words_of(clause) if word not in words.POLITE]
    if not text or order[:1] != name[:1] or not set(name) <= set(order):
        return []
    given = clause[max(clause.lower().rfind(word) + len(word) for word in name) :].strip(" :?!.")
    return [(tool.name, {text: given})] if given else []


def _looked_up(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """What the clause asks about, unless that is the time, the user or the model."""
    text, asked = _only_text(tool), words.ASKS_LOOK_UP.search(clause)
    if not text or asked is None or words.OWN.search(asked["what"]) or words.ASKS_TIME.search(clause):
        return []
    return [(tool.name, {text: asked["what"].strip(" ?!.")})] if words.LOOK_UP_TOOL.search(_about(tool)) else []


def _searched(tool: ToolSpec, clause: str, _language: str) -> list[Call]:
    """A question, put to each index that the tool names."""
    index = tool.parameters.get("properties", {}).get("index_id", {})
    is_asked = clause.endswith("?") and not words.ASKS_TIME.search(clause)
    return [(tool.name, {"index_id": each, "query": clause}) for each in index.get("enum", ()) if is_asked]


def _about(tool: ToolSpec) -> str:
    return f"{tool.name} {tool.description[:80]}"


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
    if isinstance(value, dict) and value.keys() in ({"error"}, {"code", "message"}):
        return words.FAILED[language].format(name, _spoken(value.get("error", value)))
    if isinstance(value, dict) and value.keys() >= {"index_id", "results"}:
        best = [(best_sentence(str(given.get("query")), [each["text"]]), each["id"]) for each in value["results"]]
        return next((f"{words.QUOTED[language].format(said)} [{source}]" for said, source in best if said), "")
    if isinstance(given, dict) and "expression" in given:
        return words.IS[language].format(given["expression"], _spoken(value))
    return " ".join(sentences_of(_spoken(value))[:RESULT_SENTENCES]) or words.NOTHING[language].format(name)


def _spoken(value: Any) -> str:
    """A JSON value as people read it: of an object the entry that says most, else all."""
    if isinstance(value, dict) and value.keys() >= {"zone", "weekday", "date", "time"}:
        return words.MOMENT.format(**value)
    if isinstance(value, dict):
        telling = [value[key] for key in words.TELLING if value.get(key) not in (None, "")][:1]
        return "\n".join(map(_spoken, telling or (f"{key}: {_spoken(each)}" for key, each in value.items())))
    return "\n".join(map(_spoken, value)) if isinstance(value, list) else "" if value is None else str(value)


# -- schemas


def _json(response_format: Mapping[str, Any], text: str) -> str:
    """JSON for the schema, however it is wrapped."""
    wrapped = response_format.get("json_schema", response_format)
    schema = {"type": "object"} if wrapped.get("type") == "json_object" else wrapped.get("schema", wrapped)
    inputs = "\n".join(str(parsed(value)) for value in _ENTRY.findall(text))
    return json.dumps(filled(schema, inputs or text), ensure_ascii=False)


def filled(schema: Any, text: str) -> Any:  # noqa: PLR0911 - one a type
    """A value that fits: of an enum the one that the text names, else the default, a neutral one or a blank.

    Free texts are sentences of the text. References and patterns are not followed.
    """
    schema = _one_type(schema)
    if named := [value for value in schema.get("enum", ()) if _is_named(str(value), text)]:
        return named[0]
    if "default" in schema or "const" in schema:
        return schema.get("default", schema.get("const"))
    if schema.get("enum"):
        return next((value for value in words.NEUTRAL if value in schema["enum"]), schema["enum"][0])
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: filled(fields.get(name), text) for name in schema.get("required", ())}
        case "array":
            return [filled(schema.get("items"), text)] * min(schema.get("minItems", 0), MAX_ITEMS)
        case "integer" | "number":
            return max(schema.get("minimum", 0), min(0, schema.get("maximum", 0)))
        case "string":
            return " ".join(sentences_of(text)[:2])[: min(FREE_TEXT_CHARS, schema.get("maxLength", FREE_TEXT_CHARS))]
    return False if schema.get("type") == "boolean" else None


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


def _is_named(value: str, text: str) -> bool:
    """Whether the text has all words of an enum's value."""
    parts, said = name_words(value), words_of(text)
    return bool(parts) and all(any(is_alike(part, word) for word in said) for part in parts)


# -- texts


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


def is_alike(word: str, other: str) -> bool:
    """Whether the words are the same, or one is a part of the other: ``sport``, ``Lieblingssport``."""
    return word == other or (min(len(word), len(other)) >= PART_CHARS and (word in other or other in word))


def language_of(texts: Iterable[str]) -> str:
    """``en`` or ``de``: that of the first text that shows one."""
    for said in map(words_of, texts):
        german, english = (sum(word in words.LANGUAGES[name] for word in said) for name in ("de", "en"))
        if german != english:
            return "de" if german > english else "en"
    return "en"


def sentences_of(text: str) -> list[str]:
    return [sentence for each in _SENTENCE_END.split(text) if (sentence := each.strip(" \t-*"))]


def best_sentence(question: str, texts: Iterable[str]) -> str:
    """The newest sentence that says most of what is asked, and at least half of it; empty where none does."""
    asked, best, answer = matter(question[:500]), 0.5, ""
    for sentence in (sentence for text in texts for sentence in sentences_of(text)):
        known = matter(sentence)
        share = sum(any(is_alike(word, other) for other in known) for word in asked) / max(1, len(asked))
        if share >= best and known - asked and not sentence.endswith("?"):
            best, answer = share, sentence
    return answer


def sums_of(text: str, language: str) -> list[str]:
    """The sums that a clause asks for, as expressions that the calculator takes."""
    written, sums = text[:500], list[str]()
    for spoken, sign in words.SPOKEN.items():
        written = re.sub(spoken, sign, written, flags=re.IGNORECASE)
    for run in _SUM.finditer(written):
        is_asked = all(word in words.ASKS_SUM or word[0].isdigit() for word in words_of(written[: run.start()]))
        expression = re.sub(_NUMBER, lambda number: _plain_number(number.group(), language), run.group())
        expression = re.sub(r"\s+", " ", expression).lstrip(" +*/%").rstrip(" +-*/")
        if is_asked and re.search(r"\d.*[-+*/^×÷−%].*\d|sqrt", expression) and is_arithmetic(expression):
            sums.append(expression)
    return sums


def _plain_number(text: str, language: str) -> str:
    """A number as computers write it: separators of thousands go, and a decimal comma becomes a point."""
    thousands = "." if language == "de" else ","
    is_grouped = re.fullmatch(rf"\d{{1,3}}(?:\{thousands}\d{{3}})+(?:[.,]\d+)?", text)
    return (text.replace(thousands, "") if is_grouped else text).replace(",", ".")


def zones_of(text: str) -> list[str]:
    """The time zones of the places that the text asks about, in its order."""
    zones = _zones()
    places = "|".join(map(re.escape, zones))
    named = re.findall(rf"\b(?:in|at|for|für|and|und) +({places})\b", text, re.IGNORECASE)
    return list(dict.fromkeys(zones[place.lower()] for place in named))


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    """All time zones by the place that their name ends with."""
    names = files("tzdata").joinpath("zones").read_text("utf-8").split()
    return {name.rpartition("/")[2].replace("_", " ").lower(): name for name in names} | words.ZONES
