"""What a person sees of a call that needs a word of theirs (S20, S22)."""

from __future__ import annotations

from organism.model.redact import visible


def test_what_nobody_sees_is_written_out() -> None:
    shown = visible({"id": "a\u202eb\u200b", "list": ["\x00", 1, None], "\u2066key": {"deep": "\ufeff"}})
    assert shown == {
        "id": "a⟨U+202E⟩b⟨U+200B⟩",
        "list": ["⟨U+0000⟩", 1, None],
        "⟨U+2066⟩key": {"deep": "⟨U+FEFF⟩"},
    }


def test_what_everybody_sees_stays_as_it_is() -> None:
    text = "Grüße, 日本, 🙂\n\ttabbed"
    assert visible(text) == text
