"""config/tokens.yaml on the disk: whole or not at all, for its owner alone."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from organism.config.token_edit import NewToken, added, edit_tokens
from organism.config.tokens import read_tokens
from organism.errors import ConfigInvalid


def new(name: str) -> NewToken:
    return NewToken(tenant="acme", name=name, sha256=name.encode().hex().rjust(64, "0"), scopes=("read",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "tokens.yaml"


def test_the_first_edit_makes_a_file_for_its_owner_alone(path: Path) -> None:
    edit_tokens(path, lambda text: added(text, new("ci")))
    assert [token.name for token in read_tokens(path)[0].tokens] == ["ci"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("# Who may use")


def test_an_edit_keeps_the_files_mode_and_the_link_that_leads_to_it(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.yaml"
    real.write_text("tenants: []\n")
    real.chmod(0o640)
    path.parent.mkdir()
    path.symlink_to(real)
    edit_tokens(path, lambda text: added(text, new("ci")))
    assert path.is_symlink()
    assert read_tokens(real)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_an_edit_that_fails_changes_nothing_and_leaves_nothing(path: Path) -> None:
    edit_tokens(path, lambda text: added(text, new("ci")))
    before = path.read_bytes()
    with pytest.raises(ConfigInvalid):
        edit_tokens(path, lambda text: added(text, new("a b")))
    path.write_bytes(before + b"more: 1\n")
    with pytest.raises(ConfigInvalid):
        edit_tokens(path, lambda text: added(text, new("web")))
    assert path.read_bytes() == before + b"more: 1\n"
    assert [each.name for each in path.parent.iterdir()] == ["tokens.yaml"]


def test_edits_at_the_same_time_all_count(path: Path) -> None:
    names = [f"t{number}" for number in range(12)]
    threads = [
        threading.Thread(target=edit_tokens, args=(path, lambda text, name=name: added(text, new(name))))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(token.name for token in read_tokens(path)[0].tokens) == sorted(names)
