"""The offline model as a provider. The first rule that fits gives the answer.

It calls tools, fills the JSON that is asked for, tells what the tools said, summarises, quotes, or says that it is a
stand-in. Arguments come from the user's own words: neither instructions nor results of tools put anything into a call.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from organism.agents.providers import messages
from organism.agents.providers.offline import reading, words
from organism.agents.providers.offline.filling import Filler, name_words
from organism.model.completion import ChatMessage, Finish, ModelRequest, Part, TextDelta, ToolCall, Usage
from organism.model.tool import ToolSpec

Call = tuple[str, dict[str, Any]]  # a tool's name and its arguments

_PIECE: Final = re.compile(r"(?:\S+\s*){1,4}|\s+")
LONG_TOKENS: Final = 1_000  # a longer conversation is read in a thread, so that nothing else waits for it
SHORT_WORDS: Final = 4  # a message with no more words is an order: its material is what was said before


class Offline:
    """Answers without network, key or weights. The same request gets the same answer; tokens are estimated."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
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
    """What is said, or else the tools to call."""
    said = [(str(message.get("role")), reading.plain(message)) for message in request.messages]
    newest = max((at for at, (role, _) in enumerate(said) if role == "user"), default=len(said))
    message = "".join(text for _, text in said[newest : newest + 1])
    before = [text for role, text in said[:newest] if role not in messages.SYSTEM_ROLES]
    earlier = [text for role, text in reversed(said[:newest]) if role == "user"]
    system = "\n".join(text for role, text in said if role in messages.SYSTEM_ROLES)
    language = reading.language_of([message, *earlier, system])
    results = _results(request.messages[newest + 1 :], language)
    if not results and (calls := _calls(message, "".join(earlier[:1]), request.tools, language)):
        return "", calls
    if request.response_format and request.response_format.get("type") != "text":
        material = before if len(message.split()) <= SHORT_WORDS else []
        return _filled(request.response_format, "\n".join([*material, *results, message]), request.max_tokens), []
    text = "\n".join(results) or _summary(message, system, before) or _quote(message, before, language)
    return text or words.STAND_IN[language], []


def _filled(response_format: Mapping[str, Any], text: str, max_tokens: int | None) -> str:
    """JSON for the schema, however it is wrapped; its free texts are shorter where the answer must be."""
    wrapped = response_format.get("json_schema", response_format)
    schema = {"type": "object"} if wrapped.get("type") == "json_object" else wrapped.get("schema", wrapped)
    text_chars = 400 if max_tokens is None else min(400, max_tokens // 2)
    return json.dumps(Filler(text, text_chars).filled(schema), ensure_ascii=False)


def _summary(message: str, system: str, before: Sequence[str]) -> str:
    """A quarter of the sentences: those of the message, else those of what was said before."""
    sentences = reading.sentences_of(message) or [""]
    order = next((each for each in (sentences[0], sentences[-1]) if words.SUMMARISE.search(each)), None)
    if order is None and not (words.SUMMARISE.search(system) and len(sentences) > 1):
        return ""
    own = [*(order or "").partition(": ")[2:], *(each for each in sentences if each != order)]
    text = "\n".join(own).strip() or "\n".join(before)
    return " ".join(reading.key_sentences(text, -(-len(reading.sentences_of(text)) // 4)))


def _quote(message: str, before: Sequence[str], language: str) -> str:
    """The sentence that answers the question: of the message itself, or of what was said before it."""
    sentences = reading.sentences_of(message)
    asked = " ".join(each for each in sentences if each.endswith("?"))
    found = reading.best_sentence(asked, [*before, *(each for each in sentences if each not in asked)])
    return words.QUOTED[language].format(found) if found else ""


def _calls(message: str, earlier: str, tools: Sequence[ToolSpec], language: str) -> list[Call]:
    """The calls that the message asks for; a follow-up (``and in Rome?``) asks what ``earlier`` asked."""
    calls: list[Call] = []
    for clause in () if words.NO_TOOLS.search(message) else words.CLAUSE_END.split(message)[:50]:
        asked = f"{earlier} {clause}" if words.FOLLOW_UP.match(clause) else clause
        rules = () if words.NEGATED.search(clause) else (_computed, _ordered, _looked_up)
        calls += next(filter(None, (rule(tool, clause, asked, language) for rule in rules for tool in tools)), [])
    return [call for at, call in enumerate(calls) if call not in calls[:at]]


def _computed(tool: ToolSpec, clause: str, asked: str, language: str) -> list[Call]:
    """A sum, or the time somewhere."""
    text, about = _only_text(tool), f"{tool.name} {tool.description[:80]}"
    if text and words.SUM_TOOL.search(about):
        return [(tool.name, {text: each}) for each in reading.sums_of(clause, language)]
    zones, is_elsewhere = reading.zones_of(clause), re.search(r"\bin [A-ZÄÖÜ]", clause)
    if not words.TIME_TOOL.search(about) or not words.ASKS_TIME.search(asked) or (is_elsewhere and not zones):
        return []
    zone = next((name for name in tool.parameters.get("properties", {}) if "zone" in name), "")
    zones = zones or ["UTC"] * (zone in tool.parameters.get("required", ()))
    return [(tool.name, {zone: each}) for each in zones] if zone and zones else [(tool.name, {})]


def _ordered(tool: ToolSpec, clause: str, _asked: str, _language: str) -> list[Call]:
    """An order that begins with the tool's name (``delete the file …``) and says what the tool requires."""
    name, said = name_words(tool.name), [word for word in reading.words_of(clause) if word not in words.POLITE]
    if said[:1] != name[:1] or not set(name) <= set(said):
        return []
    filler, text = Filler(clause), _only_text(tool)
    found = {key: filler.found(schema, key) for key, schema in tool.parameters.get("properties", {}).items()}
    if text and found[text] is None:
        found[text] = clause[max(clause.lower().rfind(word) + len(word) for word in name) :].strip(" :?!.") or None
    given = {key: value for key, value in found.items() if value is not None}
    return [(tool.name, given)] if given.keys() >= set(tool.parameters.get("required", ())) else []


def _looked_up(tool: ToolSpec, clause: str, asked: str, _language: str) -> list[Call]:
    """What the clause asks about, if that is neither the time nor one of the two who talk."""
    text, found = _only_text(tool), words.ASKS_LOOK_UP.search(clause)
    what = found["what"] if found else words.FOLLOW_UP.sub("", clause) if words.ASKS_LOOK_UP.search(asked) else ""
    is_other = not what or words.OWN.search(what) or words.ASKS_TIME.search(asked)
    fits = words.LOOK_UP_TOOL.search(f"{tool.name} {tool.description[:80]}")
    return [(tool.name, {text: what.strip(" ?!.")})] if text and fits and not is_other else []


def _only_text(tool: ToolSpec) -> str | None:
    """The one text that a tool takes: its only required parameter, or its only one."""
    fields = tool.parameters.get("properties", {})
    names = tool.parameters.get("required") or [*fields]
    return names[0] if len(names) == 1 and fields.get(names[0], {}).get("type") == "string" else None


def _results(since: Sequence[ChatMessage], language: str) -> list[str]:
    """What the tools have answered since the user spoke, each as a sentence."""
    calls = {call.get("id"): call.get("function", {}) for message in since for call in message.get("tool_calls") or ()}
    results = [message for message in since if message.get("role") == "tool"]
    return [_told(calls.get(each.get("tool_call_id"), {}), reading.plain(each), language) for each in results]


def _told(call: Mapping[str, Any], text: str, language: str) -> str:
    value, given, name = reading.parsed(text), reading.parsed(call.get("arguments") or ""), call.get("name", "tool")
    error = value if isinstance(value, dict) and value.keys() in ({"error"}, {"code", "message"}) else None
    if error is not None:
        return words.FAILED[language].format(name, _said(error.get("error", error)))
    said = _said(value)
    if isinstance(given, dict) and "expression" in given:
        return words.IS[language].format(given["expression"], said)
    return " ".join(reading.key_sentences(said, 5)) or words.NOTHING[language].format(name)


def _said(value: Any) -> str:
    """A JSON value as people read it: of an object the entry that says most, else all."""
    if isinstance(value, dict) and value.keys() >= {"zone", "weekday", "date", "time"}:
        return words.MOMENT.format(**value)
    if isinstance(value, dict):
        telling = next((value[key] for key in words.TELLING if value.get(key) not in (None, "")), None)
        return (
            _said(telling) if telling is not None else ", ".join(f"{key}: {_said(each)}" for key, each in value.items())
        )
    return "\n".join(map(_said, value)) if isinstance(value, list) else "" if value is None else str(value)
