"""Files of agents: what is read of them, and what is refused, all of it at once."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

import organism.agents
from organism.config.agents import MAX_FILES, AgentFiles, read_agent_files
from organism.config.faults import MAX_FILE_BYTES, Faults
from organism.config.settings import AgentSettings, Budget, Spend
from organism.errors import ConfigInvalid
from tests.agents.stack import a2, write

ADA = """\
name: ada
model: tiny
description: Answers
system_prompt: Be exact.
"""
BUNDLED = Path(organism.agents.__file__).parent / "bundled"


def put(folder: Path, text: str, name: str = "ada.yaml") -> None:
    path = folder / "config/agents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def read(folder: Path, bundled: Path | None = None) -> AgentFiles:
    faults = Faults("organism.yaml")
    files = read_agent_files(folder, bundled, faults)
    faults.refuse_if_any()
    return files


def refused(folder: Path) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as error:
        read(folder)
    return {fault.pointer.removeprefix("config/agents/"): fault.message for fault in error.value.details}


def test_what_a_file_leaves_out_has_its_default(tmp_path: Path) -> None:
    put(tmp_path, ADA)
    agent = read(tmp_path).agents["ada"].agent
    assert agent == AgentSettings(name="ada", model="tiny", description="Answers", system_prompt="Be exact.")
    assert (agent.max_tokens, agent.temperature, agent.tools, agent.rag_index, agent.rag_top_k) == (
        None,
        None,
        (),
        None,
        5,
    )
    assert (agent.budget, agent.taint) == (Budget(), None)


def test_every_key_of_a_file_is_taken(tmp_path: Path) -> None:
    put(
        tmp_path,
        ADA
        + """\
max_tokens: 512
temperature: 0.3
tools: [calculator, current_datetime]
rag_index: berlin-info
rag_top_k: 3
budget: {run: {usd: 0.1}, day: {calls: 5}}
taint: allow
""",
    )
    assert read(tmp_path).agents["ada"].agent == AgentSettings(
        name="ada",
        model="tiny",
        description="Answers",
        system_prompt="Be exact.",
        max_tokens=512,
        temperature=0.3,
        tools=("calculator", "current_datetime"),
        rag_index="berlin-info",
        rag_top_k=3,
        budget=Budget(Spend(usd=Decimal("0.1")), Spend(calls=5)),
        taint="allow",
    )


@pytest.mark.parametrize("name", ["ada", "Ada_2", "2", "-", "a" * 128])
def test_a_name_is_of_letters_digits_and_two_signs(tmp_path: Path, name: str) -> None:
    put(tmp_path, ADA.replace("name: ada", f"name: '{name}'"), f"{name}.yaml")
    assert list(read(tmp_path).agents) == [name]


@pytest.mark.parametrize("key", ["name", "model", "description", "system_prompt"])
def test_a_key_that_must_be_there_is_named(tmp_path: Path, key: str) -> None:
    put(tmp_path, "".join(line for line in ADA.splitlines(keepends=True) if not line.startswith(key)))
    assert refused(tmp_path) == {f"ada.yaml:1:{key}": f"`{key}` is missing"}


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("color: red", "5:color", "unknown key `color`; known here: budget, description"),
        ("tool: [a]", "5:tool", "unknown key `tool`; did you mean `tools`?"),
        ("max_tokens: 0", "5:max_tokens", "expected at least 1, came 0 (a number)"),
        ("temperature: 3", "5:temperature", "expected at most 2, came 3 (a number)"),
        ("temperature: -1", "5:temperature", "expected at least 0, came -1 (a number)"),
        ("tools: calculator", "5:tools", 'expected a list, came "calculator" (text)'),
        ("tools: [a b]", "5:tools[0]", "expected a name: a letter"),
        ("rag_index: ../x", "5:rag_index", "expected the name of an index"),
        ("rag_top_k: 51", "5:rag_top_k", "expected at most 50"),
        ("budget: {run: {usd: -1}}", "5:budget.run.usd", "expected at least 0"),
        ("taint: ignore", "5:taint", "expected 'escalate' or 'allow', came \"ignore\" (text)"),
        ("on_busy: queue", "5:on_busy", "unknown key `on_busy`"),
        ("model: other", "5:model", "this key stands here twice, first in line 2"),
    ],
)
def test_each_wrong_key_is_refused_with_file_line_and_key(tmp_path: Path, line: str, place: str, message: str) -> None:
    put(tmp_path, ADA + line)
    ((where, what),) = refused(tmp_path).items()
    assert where == f"ada.yaml:{place}"
    assert what.startswith(message)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1", "the file is empty; expected a mapping with `name`, `model`, `description` and `system_prompt`"),
        ("[]", "1", "expected a mapping, came a list"),
        ("ada", "1", 'expected a mapping, came "ada" (text)'),
        ("name: [", "1", "this is not YAML"),
        (ADA.replace("ada", "eve"), "1:name", "expected `ada`, as the file is called, came `eve`"),
        (ADA.replace("ada", "a.b"), "1:name", "expected a name of letters, digits, `_` and `-`"),
        (ADA.replace("ada", "../ada"), "1:name", "expected a name of letters, digits, `_` and `-`"),
        (ADA.replace("ada", '"ada\\n"'), "1:name", "expected a name of letters, digits, `_` and `-`"),
        (ADA.replace("tiny", "''"), "2:model", "expected text that is not empty"),
        (ADA.replace("Answers", "' '"), "3:description", "expected text that is not blank"),
        ("x" * (MAX_FILE_BYTES + 1), "1", f"expected at most {MAX_FILE_BYTES} bytes, came more; shorten it"),
    ],
)
def test_a_file_that_is_no_agent_is_refused(tmp_path: Path, text: str, place: str, message: str) -> None:
    put(tmp_path, text)
    found = refused(tmp_path)
    assert found[f"ada.yaml:{place}"].startswith(message)


def test_prompts_are_read_by_name_and_version(tmp_path: Path) -> None:
    write(tmp_path, a2())
    write(tmp_path, {**a2(), "version": "v2"}, "A2", "v2")
    assert set(read(tmp_path).prompts) == {("A2", "v1"), ("A2", "v2")}


def test_all_faults_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    write(tmp_path, {**a2(), "mode": "Guesser"})
    put(tmp_path, ADA + "color: red\nsize: 3\n")
    put(tmp_path, ADA, "eve.yaml")
    with pytest.raises(ConfigInvalid) as error:
        read(tmp_path)
    assert [fault.pointer for fault in error.value.details] == [
        "config/agents/A2/v1.json:/mode",
        "config/agents/ada.yaml:5:color",
        "config/agents/ada.yaml:6:size",
        "config/agents/eve.yaml:1:name",
    ]
    assert error.value.message.startswith(
        "config/agents/A2/v1.json, config/agents/ada.yaml and 1 more files are not valid: 4 faults"
    )


@pytest.mark.parametrize(
    ("name", "where"), [("ada.yml", "config/agents/ada.yaml"), ("A2.json", "config/agents/A2/v1.json")]
)
def test_a_file_in_the_wrong_place_is_told_where_it_belongs(tmp_path: Path, name: str, where: str) -> None:
    put(tmp_path, ADA, name)
    assert refused(tmp_path) == {f"{name}:1": f"this file would not be read: expected it at {where}"}


def test_what_is_hidden_or_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    for name in (".ada.yaml", ".git/x.json", "README.md", "ada.yaml~", "A2/.v1.json", "A2/notes.txt", "A2/ada.yaml"):
        put(tmp_path, "not to be read", name)
    assert read(tmp_path) == AgentFiles(digest=read(tmp_path).digest)


def test_names_of_prompts_fit_their_pattern(tmp_path: Path) -> None:
    put(tmp_path, "{}", "A 2/v1.json")
    put(tmp_path, "{}", "A2/v 1.json")
    assert set(refused(tmp_path)) == {"A 2/v1.json:1", "A2/v 1.json:1"}


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    put(tmp_path, ADA)
    os.mkfifo(tmp_path / "config/agents/eve.yaml")
    (tmp_path / "config/agents/gone.yaml").symlink_to("nowhere")
    assert set(refused(tmp_path)) == {"eve.yaml:1", "gone.yaml:1"}


def test_no_link_leads_out_of_the_organisms_folder(tmp_path: Path) -> None:
    folder = tmp_path / "organism"
    put(folder, ADA)
    put(tmp_path, "{}", "A2/v1.json")
    (folder / "ada.yaml").write_text(ADA.replace("ada", "eve"))
    (folder / "config/agents/eve.yaml").symlink_to("../../ada.yaml")
    assert set(read(folder).agents) == {"ada", "eve"}
    (folder / "config/agents/A2").symlink_to(tmp_path / "config/agents/A2")
    (folder / "config/agents/bob.yaml").symlink_to("/etc/hostname")
    assert set(refused(folder)) == {"A2/v1.json:1", "bob.yaml:1"}


def test_the_folder_itself_is_no_link_that_leads_out(tmp_path: Path) -> None:
    put(tmp_path, ADA)
    (tmp_path / "organism").mkdir()
    (tmp_path / "organism/config").symlink_to("../config")
    assert set(refused(tmp_path / "organism")) == {"config/agents:1"}


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/agents").write_text("")
    assert refused(tmp_path) == {"config/agents:1": "expected a folder with the files of agents, came a file"}


@pytest.mark.thorough
def test_there_may_be_a_thousand_files_and_no_more(tmp_path: Path) -> None:
    for at in range(MAX_FILES + 1):
        put(tmp_path, ADA.replace("ada", f"a{at:04}"), f"a{at:04}.yaml")
    assert refused(tmp_path) == {"a1000.yaml:1": "expected at most 1000 files of agents, came more"}
    (tmp_path / "config/agents/a0000.yaml").unlink()
    assert len(read(tmp_path).agents) == MAX_FILES


def test_the_bundled_agents_are_served_only_where_there_is_no_folder(tmp_path: Path) -> None:
    assert read(tmp_path).agents == {}
    files = read(tmp_path, BUNDLED)
    assert "concise-de" in files.agents
    assert all(entry.is_bundled for entry in files.agents.values())
    (tmp_path / "config/agents").mkdir(parents=True)
    assert read(tmp_path, BUNDLED).agents == {}


def test_the_bundled_agents_are_those_of_the_seed(tmp_path: Path) -> None:
    agents = {name: entry.agent for name, entry in read(tmp_path, BUNDLED).agents.items()}
    assert {name: (agent.model, agent.tools) for name, agent in agents.items()} == {
        "concise-de": ("llama-4-scout", ()),
        "berlin-tour": ("llama-4-scout", ()),
        "berlin-rag": ("llama-4-scout", ()),
        "researcher": (
            "claude-opus-4.7",
            ("calculator", "current_datetime", "wikipedia_search", "wikipedia_summary"),
        ),
        "researcher-rag": ("claude-opus-4.7", ("calculator", "current_datetime", "wikipedia_search")),
        "librarian": ("claude-opus-4.7", ("rag_query",)),
    }
    indices = {name: (agent.rag_index, agent.rag_top_k) for name, agent in agents.items() if agent.rag_index}
    assert indices == {"berlin-rag": ("berlin-info", 3), "researcher-rag": ("matrix-rag-idx", 5)}


def test_the_digest_changes_with_each_file_and_with_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, ADA)
    write(tmp_path, a2())
    digests = [read(tmp_path).digest, read(tmp_path).digest]
    put(tmp_path, "no file of an agent", "README.md")
    digests.append(read(tmp_path).digest)
    assert len(set(digests)) == 1
    put(tmp_path, ADA.replace("exact", "brief"))
    digests.append(read(tmp_path).digest)
    write(tmp_path, {**a2(), "temperature": 1})
    digests.append(read(tmp_path).digest)
    (tmp_path / "config/agents/ada.yaml").rename(tmp_path / "config/agents/eve.txt")
    digests.append(read(tmp_path).digest)
    assert len(set(digests)) == 4
