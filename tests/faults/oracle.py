"""The oracle: what came back to the outside, held against the log. Each law gives sentences for what breaks it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.faults.follower import Follower
from tests.faults.ledger import Entry, Ledger
from tests.faults.workload import Injection, Result

CONSOLE: Final = "console"


@dataclass(frozen=True, slots=True)
class Line:
    """One run of an effect, as the outside world noted it."""

    key: str
    tag: str
    what: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that the outside has.

    ``killed`` are the threads that the server said were killed, ``attempts`` is the organism's ``retry.attempts``.
    """

    injections: Sequence[Injection]
    ledger: Ledger
    lines: Sequence[Line]
    followers: Sequence[Follower]
    killed: frozenset[str] = frozenset()
    attempts: int = 3


def read_lines(file: Path) -> list[Line]:
    """The effects' file."""
    if not file.exists():
        return []
    return [Line(*line.split("\t")) for line in file.read_text().splitlines()]


def judge(evidence: Evidence) -> list[str]:
    """Everything that is not as it was promised; empty if all is well."""
    return [f"{law.__name__[1:]}: {sentence}" for law in LAWS for sentence in law(evidence)]


def _the_log_makes_sense(evidence: Evidence) -> Iterator[str]:
    """Dense positions, no message that was never sent, nothing after a kill, no start in a pause."""
    yield from evidence.ledger.oddities


def _nothing_accepted_is_lost(evidence: Evidence) -> Iterator[str]:
    entries = evidence.ledger.entries
    for injection in evidence.injections:
        for answer in injection.answers:
            if answer.status != 202:
                yield f"{injection.tag} was refused: {answer.body.decode()}"
                continue
            said = answer.json
            entry = entries.get(said["message_id"])
            if entry is None:
                yield f"{injection.tag} was accepted as {said['message_id']}, which is not in the log"
            elif (entry.thread, entry.position) != (said["thread_id"], said["position"]):
                yield f"{injection.tag} was accepted as {said}; the log has {entry}"
            elif entry.payload["tag"] != injection.tag:
                yield f"{injection.tag} was accepted as {entry.id}, which is {entry.payload}"


def _the_same_key_has_the_same_answer(evidence: Evidence) -> Iterator[str]:
    for injection in evidence.injections:
        if len({(answer.status, answer.body) for answer in injection.answers}) > 1:
            yield f"{injection.tag}: {[answer.body.decode() for answer in injection.answers]}"


def _nothing_is_taken_twice(evidence: Evidence) -> Iterator[str]:
    """One message for each injection; none is right too for one that had no key and was never answered."""
    roots = Counter(entry.payload["tag"] for entry in _from_console(evidence))
    injected = {injection.tag: injection for injection in evidence.injections}
    for tag, count in roots.items():
        if tag not in injected:
            yield f"{tag} is in the log, and was never injected"
        elif count > 1:
            yield f"{tag} is in the log {count} times"
    for tag, injection in injected.items():
        if roots[tag] == 0 and injection.key is not None:
            yield f"{tag} has a key and was sent {injection.sent} times, and is not in the log"


def _from_console(evidence: Evidence) -> list[Entry]:
    return [entry for entry in evidence.ledger.entries.values() if entry.sender == CONSOLE]


def _each_message_ends_once(evidence: Evidence) -> Iterator[str]:
    for entry in evidence.ledger.entries.values():
        if len(entry.ends) != 1:
            yield f"{entry.id} from {entry.sender} to {entry.to} has {len(entry.ends)} ends: {entry.ends}"


def _each_injection_has_its_results_once(evidence: Evidence) -> Iterator[str]:
    """Its results are on the console, each once; what was killed, or parked with the process, may lack some."""
    found = _grouped((entry.payload["tag"], entry) for entry in evidence.ledger.entries.values() if entry.to == CONSOLE)
    broken = {evidence.ledger.entries[message].thread for message in evidence.ledger.parked}
    broken.update(evidence.ledger.killed)
    threads = {entry.payload["tag"]: entry.thread for entry in _from_console(evidence)}
    for injection in evidence.injections:
        results = [_result(entry) for entry in found.get(injection.tag, [])]
        whole = injection.tag in threads and threads[injection.tag] not in broken
        if len(set(results)) != len(results):
            yield f"{injection.tag} has a result twice: {sorted(results)}"
        elif whole and set(results) != injection.expected:
            yield f"{injection.tag} came to {sorted(results)}, expected {sorted(injection.expected)}"
        elif not whole and not set(results) <= injection.expected:
            yield f"{injection.tag} came to {sorted(results)}, of {sorted(injection.expected)}"


def _result(entry: Entry) -> Result:
    payload = entry.payload
    value = "?" if payload["kind"] == "paid" else payload.get("value", "")
    return (payload["kind"], payload.get("part", 0), value)


def _an_unsafe_effect_ran_once_or_is_indeterminate(evidence: Evidence) -> Iterator[str]:
    runs = Counter(line.key for line in evidence.lines)
    for effect in evidence.ledger.effects.values():
        if effect.kind != "unsafe":
            continue
        count = runs[effect.line_key]
        if count > 1:
            yield f"{effect.line_key} ran {count} times"
        elif count == 0 and effect.ends[-1:] in (["recorded"], ["done"]):
            yield f"{effect.line_key} is {effect.ends[-1]} and never ran"


def _an_effect_has_one_key(evidence: Evidence) -> Iterator[str]:
    """For one tag and one step there is one key, and what chance gave the step is one thing too."""
    by_step = _grouped((f"{line.tag} {line.what.split()[0]}", (line.key, line.what)) for line in evidence.lines)
    for step, runs in by_step.items():
        if len(set(runs)) > 1:
            yield f"{step}: {sorted(set(runs))}"


def _what_is_recorded_has_run(evidence: Evidence) -> Iterator[str]:
    ran = {line.key for line in evidence.lines}
    known = {effect.line_key for effect in evidence.ledger.effects.values()}
    for effect in evidence.ledger.effects.values():
        if effect.ends[-1:] == ["recorded"] and effect.line_key not in ran:
            yield f"{effect.line_key} is recorded and never ran"
    for key in ran - known:
        yield f"{key} ran, and the log does not know it"


def _only_what_ran_at_its_deaths_is_parked(evidence: Evidence) -> Iterator[str]:
    for message, deaths in evidence.ledger.parked.items():
        if deaths < evidence.attempts:
            yield f"{message} to {evidence.ledger.entries[message].to} is parked after {deaths} deaths"


def _what_was_killed_stays_so(evidence: Evidence) -> Iterator[str]:
    yield from (f"{thread} is not killed in the log" for thread in evidence.killed - evidence.ledger.killed)


def _followers_saw_the_log(evidence: Evidence) -> Iterator[str]:
    for follower in evidence.followers:
        yield from (f"{follower.subscription.name}: {fault}" for fault in follower.faults)
        until = min(follower.position, evidence.ledger.head)
        seen = [frame for frame in follower.frames if frame[0] <= until]
        expected = evidence.ledger.frames(follower.subscription, until)
        if seen != expected:
            yield f"{follower.subscription.name}: {_first_difference(seen, expected)}"


def _first_difference(seen: Sequence[object], expected: Sequence[object]) -> str:
    for number, (one, other) in enumerate(zip(seen, expected, strict=False)):
        if one != other:
            return f"frame {number} is {one}, the log says {other}"
    following = (*seen, *expected)[min(len(seen), len(expected))]
    return f"{len(seen)} frames, the log says {len(expected)}; the next is {following}"


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


LAWS: Final = (
    _the_log_makes_sense,
    _nothing_accepted_is_lost,
    _the_same_key_has_the_same_answer,
    _nothing_is_taken_twice,
    _each_message_ends_once,
    _each_injection_has_its_results_once,
    _an_unsafe_effect_ran_once_or_is_indeterminate,
    _an_effect_has_one_key,
    _what_is_recorded_has_run,
    _only_what_ran_at_its_deaths_is_parked,
    _what_was_killed_stays_so,
    _followers_saw_the_log,
)
