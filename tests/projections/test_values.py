"""The values of the key_value tools."""

from __future__ import annotations

from tests.projections.folding import Story, fold, model_named

MODEL = model_named("values")


def test_a_value_lies_where_it_was_set_last() -> None:
    story = Story()
    story.tell("value_set", "t", key="a", content="digest")
    story.tell("value_set", "t", key="b", content="digest", authors=["wiki"])
    story.tell("value_set", "u", key="a", content="digest")
    assert fold(MODEL, story.events) == {
        "a": {"key": "a", "position": 3, "authors": []},
        "b": {"key": "b", "position": 2, "authors": ["wiki"]},
    }


def test_a_value_that_was_deleted_is_gone_until_it_is_set_again() -> None:
    story = Story()
    story.tell("value_set", "t", key="a", content="digest")
    story.tell("value_set", "t", key="a", deleted=True)
    assert fold(MODEL, story.events) == {}
    story.tell("value_set", "t", key="a", content="digest")
    assert fold(MODEL, story.events) == {"a": {"key": "a", "position": 3, "authors": []}}
