"""``organism.charter``: the file with what every prompt of the turn loop begins with."""

from __future__ import annotations

import pytest

from organism.config.reload import diff
from organism.config.settings import Charter, Settings
from organism.config.shown import shown_settings
from tests.config.place import GREETER, Place

THINKER = """\
  - name: thinker
    description: Thinks
    model: tiny
  - name: shaper
    description: Shapes
    prompt_ref: A2@v1
"""
MODELS = "models: {tiny: {provider: offline}}\n"
A2 = """
{"agent_name": "A2", "version": "v1", "mode": "Writer", "system_text": "s", "purpose_text": "p",
 "output_schema": {"type": "object", "properties": {"a": {"type": "string"}}}, "model_name": "tiny"}
"""


def load(place: Place, charter: str | None = None) -> Settings:
    key = f", charter: {charter}" if charter is not None else ""
    place.write("config/agents/A2/v1.json", A2)
    place.yaml(f"organism: {{name: hello, imports: [handlers]{key}}}\n{MODELS}listeners:\n{GREETER}{THINKER}")
    return place.load()


def test_without_a_key_and_a_file_the_charter_is_the_one_that_ships(place: Place) -> None:
    assert load(place).charter == Charter(written=True, text=None)


@pytest.mark.parametrize("key", [None, "true"])
def test_the_usual_file_next_to_organism_yaml_is_taken_if_it_is_there(place: Place, key: str | None) -> None:
    place.write("prompts/charter.md", "Be good.")
    assert load(place, key).charter == Charter(written=True, text="Be good.")


def test_the_key_names_another_file(place: Place) -> None:
    place.write("ours/law.md", "Be better.")
    assert load(place, "ours/law.md").charter == Charter(written="ours/law.md", text="Be better.")


def test_the_charter_is_off_by_its_key(place: Place) -> None:
    place.write("prompts/charter.md", "Be good.")
    assert load(place, "false").charter == Charter(written=False, text="")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("nowhere.md", "there is no file `nowhere.md` next to organism.yaml"),
        ("prompts", "there is no file `prompts` next to organism.yaml"),
        ("/etc/hostname", "expected a file next to organism.yaml or below; `/etc/hostname` leads elsewhere"),
        ("../law.md", "expected a file next to organism.yaml or below; `../law.md` leads elsewhere"),
        ("linked.md", "expected a file next to organism.yaml or below; `linked.md` leads elsewhere"),
        ("round.md", "expected a file next to organism.yaml or below; `round.md` leads elsewhere"),
        ('"a\\0"', "expected a file next to organism.yaml or below; `a\0` leads elsewhere"),
        ("3", "expected the path of a file such as `prompts/charter.md`, or false for none; came 3 (a number)"),
        ("[a]", "expected the path of a file such as `prompts/charter.md`, or false for none; came a list"),
        ("''", 'expected the path of a file such as `prompts/charter.md`, or false for none; came "" (text)'),
    ],
)
def test_what_names_no_file_is_refused_at_its_key(place: Place, key: str, message: str) -> None:
    place.write("prompts/other.md", "")
    (place.folder / "linked.md").symlink_to("/etc/hostname")
    (place.folder / "round.md").symlink_to("round.md")
    text = f"organism: {{name: hello, imports: [handlers], charter: {key}}}\nlisteners:\n{GREETER}"
    assert place.faults(text) == {"1:organism.charter": message}


def test_the_usual_file_is_no_link_that_leads_elsewhere(place: Place) -> None:
    place.write("prompts/other.md", "Be good.")
    (place.folder / "prompts/charter.md").symlink_to("other.md")
    assert load(place).charter.text == "Be good."
    (place.folder / "prompts/charter.md").unlink()
    (place.folder / "prompts/charter.md").symlink_to("/etc/hostname")
    assert list(place.faults()) == ["1:organism.charter"]


def test_a_charter_without_a_word_is_refused_in_its_own_file(place: Place) -> None:
    place.write("prompts/charter.md", " \n")
    (fault,) = place.faults().items()
    assert fault[0] == "prompts/charter.md:1"
    assert "set `organism.charter: false`" in fault[1]


def test_another_charter_updates_those_that_it_is_told_to(place: Place) -> None:
    before = load(place)
    place.write("prompts/charter.md", "Be good.")
    after = load(place)
    assert diff(before, after).updated == ("thinker",)
    assert before.digest != after.digest
    assert diff(after, load(place)).updated == ()


def test_the_key_is_shown_as_it_is_in_force(place: Place) -> None:
    assert shown_settings(load(place))["organism"]["charter"] is True
    assert shown_settings(load(place, "false"))["organism"]["charter"] is False
