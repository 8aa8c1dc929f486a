from __future__ import annotations

import json
from decimal import Decimal

import pytest

from organism.config.settings import Budget, Spend
from organism.model.agent import Prompt
from tests.agents.stack import a2, write
from tests.config.place import GREETER, HEAD, Place

SHOUTER = GREETER.replace("greeter", "shouter")


def test_a_listener_has_the_defaults_of_the_limits(place: Place) -> None:
    place.yaml("limits: {max_concurrent_per_agent: 7, handler_timeout_s: 8, max_payload_bytes: 9}\n" + HEAD + GREETER)
    greeter = place.listener()
    assert (greeter.max_concurrent, greeter.timeout_s, greeter.max_payload_bytes) == (7, 8, 9)
    assert (greeter.peers, greeter.any_peer, greeter.is_agent) == ((), False, False)
    assert (greeter.broadcast, greeter.blocking, greeter.confirm, greeter.approval) == (False, False, False, False)
    assert not greeter.brings_outside_text
    assert (greeter.prompt, greeter.prompt_ref, greeter.model) == (None, None, None)
    assert (greeter.tools, greeter.budget, greeter.invoke) == ((), Budget(), ())


MODELLED = """\
  - name: greeter
    description: Greets
    model: offline
"""


@pytest.mark.parametrize(
    ("section", "at_once"),
    [
        (GREETER, 64),
        (GREETER + "    agent: true\n    prompt: You greet.\n", 64),
        (GREETER + "    model: offline\n", 5),
        (GREETER + "    prompt_ref: A2@v1\n", 5),
        (MODELLED, 5),
        (GREETER.replace("hello.greet", "hello.slow") + "    blocking: true\n", 5),
    ],
)
def test_how_many_are_handled_at_once_follows_what_the_listener_does(place: Place, section: str, at_once: int) -> None:
    write(place.folder, a2())
    place.yaml(HEAD + section)
    assert place.listener().max_concurrent == at_once
    place.yaml("limits: {max_concurrent_per_agent: 7}\n" + HEAD + section)
    assert place.listener().max_concurrent == 7


def test_every_key_of_a_listener_is_taken(place: Place) -> None:
    write(place.folder, a2())
    place.yaml(
        HEAD
        + GREETER
        + """\
    agent: true
    peers: [greeter, console, system.todo, "*"]
    prompt: You are a friendly greeter.
    prompt_ref: A2@v1
    model: offline
    tools: [shouter]
    budget: {run: {tokens: 100, usd: 0.5}, day: {calls: 3, seconds: 60}}
    max_concurrent: 2
    timeout_s: 1.5
    max_payload_bytes: 1000
    broadcast: true
    confirm: true
    approval: true
    invoke: [batch, stream]
    brings_outside_text: true
"""
        + SHOUTER
    )
    greeter = place.listener()
    assert greeter.name == "greeter"
    assert greeter.description == "Greets"
    assert greeter.is_agent
    assert greeter.peers == ("greeter", "console", "system.todo", "*")
    assert greeter.any_peer
    assert (greeter.prompt, greeter.prompt_ref, greeter.model) == ("You are a friendly greeter.", "A2@v1", "offline")
    assert greeter.tools == ("shouter",)
    assert greeter.budget == Budget(Spend(tokens=100, usd=Decimal("0.5")), Spend(calls=3, seconds=60))
    assert (greeter.max_concurrent, greeter.timeout_s, greeter.max_payload_bytes) == (2, 1.5, 1000)
    assert (greeter.broadcast, greeter.confirm, greeter.approval) == (True, True, True)
    assert greeter.invoke == ("batch", "stream")
    assert greeter.brings_outside_text
    assert greeter.payload_class_path == "handlers.hello.Greeting"
    assert greeter.handler_path == "handlers.hello.greet"


@pytest.mark.parametrize(
    ("key", "where", "message"),
    [
        ("color: red", "color", "unknown key `color`; known here: agent, approval, blocking"),
        ("agent: yes", "agent", 'expected true or false, came "yes" (text)'),
        ("peers: console", "peers", 'expected a list, came "console" (text)'),
        ("max_concurrent: 0", "max_concurrent", "expected at least 1, came 0 (a number)"),
        ("timeout_s: 0", "timeout_s", "expected more than 0, came 0 (a number)"),
        ("broadcast: 1", "broadcast", "expected true or false, came 1 (a number)"),
        ("blocking: ~", "blocking", "expected true or false, came nothing"),
        ("max_payload_bytes: 1.5", "max_payload_bytes", "expected a whole number, came 1.5 (a number)"),
        ("prompt: ''", "prompt", 'expected text that is not empty, came "" (text)'),
        ("prompt_ref: A2@v1@v2", "prompt_ref", 'expected a prompt such as `A2@v1`; came "A2@v1@v2" (text)'),
        ("prompt_ref: A2@v1", "prompt_ref", "there is no config/agents/A2/v1.json"),
        ("prompt_ref: A2", "prompt_ref", "there is no agent `A2`; a prompt is named with its version, as A2@v1"),
        ("model: [a]", "model", "expected text, came a list"),
        ("model: ofline", "model", "there is no model `ofline` in `models` of organism.yaml; did you mean `offline`?"),
        ("tools: calculator", "tools", 'expected a list, came "calculator" (text)'),
        ("budget: 5", "budget", "expected a mapping, came 5 (a number)"),
        ("confirm: maybe", "confirm", 'expected true or false, came "maybe" (text)'),
        ("approval: {}", "approval", "expected true or false, came a mapping"),
        ("invoke: batch", "invoke", 'expected a list, came "batch" (text)'),
        ("tools: [greeter, 'not ok']", "tools[1]", "expected a name: a letter, then letters, digits, `_`, `.` or `-`"),
        ("budget: {week: {}}", "budget.week", "unknown key `week`; known here: day, run"),
        ("budget: {run: {token: 1}}", "budget.run.token", "unknown key `token`; did you mean `tokens`?"),
        ("budget: {day: {usd: -1}}", "budget.day.usd", "expected at least 0, came -1 (a number)"),
        ("invoke: [batch, both]", "invoke[1]", "expected 'batch', 'stream' or 'force', came \"both\" (text)"),
        ("peers: [console, 5]", "peers[1]", "expected text, came 5 (a number); put it in quotes to make it text"),
        ("peers: [gretter]", "peers[0]", "there is no listener `gretter`; did you mean `greeter`?"),
        ("peers: [system]", "peers[0]", "there is no listener `system`"),
        ("peers: ['']", "peers[0]", "there is no listener ``"),
        ("budget: {run: {tokens: 1.5}}", "budget.run.tokens", "expected a whole number, came 1.5 (a number)"),
        ("budget: {run: {usd: 1e30}}", "budget.run.usd", "expected at most 1000000000, came 1e+30 (a number)"),
        ("budget: {day: {seconds: ~}}", "budget.day.seconds", "expected a number, came nothing"),
        ("budget: {day: 5}", "budget.day", "expected a mapping, came 5 (a number)"),
    ],
)
def test_each_wrong_key_or_part_of_one_is_refused(place: Place, key: str, where: str, message: str) -> None:
    ((pointer, what),) = place.faults(f"{HEAD}{GREETER}    {key}\n").items()
    assert pointer == f"7:listeners[0].{where}"
    assert what.startswith(message)


def test_a_budget_bounds_what_it_names_and_nothing_is_a_bound_too(place: Place) -> None:
    place.yaml(HEAD + GREETER + "    budget: {run: {tokens: 0, usd: 0, calls: 0, seconds: 0}, day: {usd: 0.1}}\n")
    budget = place.listener().budget
    assert budget.run == Spend(tokens=0, usd=Decimal(0), calls=0, seconds=0)
    assert budget.day == Spend(tokens=None, usd=Decimal("0.1"), calls=None, seconds=None)


def test_every_wrong_item_of_a_list_is_named_and_the_rest_is_still_read(place: Place) -> None:
    faults = place.faults(HEAD + GREETER + "    tools: [1, greeter, 2]\n    peers: [3, console, nobody, 4]\n")
    assert list(faults) == [
        "7:listeners[0].tools[0]",
        "7:listeners[0].tools[2]",
        "8:listeners[0].peers[0]",
        "8:listeners[0].peers[3]",
        "8:listeners[0].peers[2]",
    ]


@pytest.mark.parametrize("key", ["name", "description", "payload_class", "handler"])
def test_a_key_that_must_be_there_is_named(place: Place, key: str) -> None:
    section = dict(place.listener().section)
    del section[key]
    ((where, what),) = place.faults(f"{HEAD}  - {json.dumps(section)}\n").items()
    assert where == f"3:listeners[0].{key}"
    assert what.startswith(f"`{key}` is missing")


@pytest.mark.parametrize("name", ["1st", "a b", "", "é", "-a", "a/b", '"greeter\\n"', "a" * 129])
def test_a_name_that_does_not_fit_is_refused(place: Place, name: str) -> None:
    text = HEAD + GREETER.replace("greeter", name if name.startswith('"') else f"'{name}'")
    assert list(place.faults(text)) == ["3:listeners[0].name"]


@pytest.mark.parametrize("name", ["a", "no", "response-handler", "a.b_c-1", "Console", "systems"])
def test_a_name_that_fits_is_taken_as_text(place: Place, name: str) -> None:
    place.yaml(HEAD + GREETER.replace("greeter", name))
    assert place.load().listeners[0].name == name


@pytest.mark.parametrize("name", ["console", "system", "system.todo", "system.x"])
def test_a_reserved_name_is_refused(place: Place, name: str) -> None:
    faults = place.faults(HEAD + GREETER.replace("greeter", name))
    assert faults == {
        "3:listeners[0].name": f"`{name}` is reserved for the organism itself; take another name",
    }


def test_a_name_given_twice_is_refused_with_both_places(place: Place) -> None:
    taken = "`greeter` is taken: listeners[0] in line 3 has it already"
    assert place.faults(HEAD + GREETER * 3) == {"7:listeners[1].name": taken, "11:listeners[2].name": taken}


def test_a_peer_may_stand_further_down_and_may_itself_be_at_fault(place: Place) -> None:
    text = HEAD + GREETER + "    peers: [shouter]\n" + SHOUTER + "    timeout_s: x\n"
    assert list(place.faults(text)) == ["12:listeners[1].timeout_s"]


def test_peers_allow_what_they_name_and_the_todo_and_itself(place: Place) -> None:
    place.yaml(HEAD + GREETER + "    peers: [shouter]\n" + SHOUTER)
    greeter = place.listener()
    assert [greeter.may_send_to(name) for name in ("shouter", "greeter", "system.todo")] == [True] * 3
    assert [greeter.may_send_to(name) for name in ("console", "system.x", "*", "")] == [False] * 4
    place.yaml(HEAD + GREETER + '    peers: ["*"]\n')
    assert place.listener().may_send_to("console")


def test_no_handler_and_no_model_is_refused_with_both_ways_out(place: Place) -> None:
    faults = place.faults(HEAD + "  - {name: greeter, description: Greets, prompt: Greet!}\n")
    assert faults == {
        "3:listeners[0].handler": "`handler` is missing: name an `async def` such as `handlers.hello.greet`, "
        "or give `model` or `prompt_ref` to let a model answer"
    }


@pytest.mark.parametrize("key", ["model: offline", "prompt_ref: A2@v1"])
def test_a_listener_that_a_model_answers_for_takes_a_prompt(place: Place, key: str) -> None:
    write(place.folder, a2())
    place.yaml(f"{HEAD}  - {{name: thinker, description: Thinks, {key}}}\n")
    thinker = place.listener("thinker")
    assert thinker.handler is None
    assert thinker.handler_path is None
    assert thinker.payload_class is Prompt
    assert thinker.payload_class_path == "organism.Prompt"
    assert thinker.accepts == {Prompt}
    assert thinker.is_agent


def test_a_listener_that_a_model_answers_for_may_name_its_payload(place: Place) -> None:
    place.yaml(HEAD + GREETER.replace("handler: handlers.hello.greet", "model: offline\n    agent: false"))
    greeter = place.listener()
    assert greeter.payload_class.__name__ == "Greeting"
    assert greeter.accepts == {greeter.payload_class}
    assert not greeter.is_agent
