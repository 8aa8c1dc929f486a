"""Editing config/tokens.yaml: an entry more or less, every comment where it was, and the file whole or as before."""

from __future__ import annotations

import difflib
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from organism.config.token_edit import added, edit_tokens, removed
from organism.config.tokens import TokenSection, parse_tokens, read_tokens
from organism.errors import ConfigInvalid, Conflict, NotFound

DIGEST = "ab" * 32
NEW = TokenSection(name="new", sha256=DIGEST, scopes=("read", "inject:agent:greeter"), models=("*",), rate=5)
FILE = """\
# all of them
tenants:
  # our first customer
  - id: acme   # since May
    defaults: {on_busy: queue}
    tokens:
      - name: ci    # builds
        sha256: "1111111111111111111111111111111111111111111111111111111111111111"
        scopes: [read,
                 inject]
      # the web shop
      - name: web
        sha256: '2222222222222222222222222222222222222222222222222222222222222222'
        scopes: [read]

  # the second one
  - id: globex
    tokens:
      - name: only
        sha256: "3333333333333333333333333333333333333333333333333333333333333333"
        scopes: [admin]
# the end
"""


def changes(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


def names(text: str) -> dict[str, list[str]]:
    return {tenant.id: [token.name for token in tenant.tokens] for tenant in parse_tokens(text)}


def test_a_new_token_is_put_after_its_tenants_last_and_no_other_line_changes() -> None:
    text = added(FILE, "acme", NEW)
    gone, come = changes(FILE, text)
    assert gone == []
    assert come == [
        '      - name: "new"',
        f'        sha256: "{DIGEST}"',
        '        scopes: ["read", "inject:agent:greeter"]',
        '        models: ["*"]',
        "        rate: 5",
    ]
    assert names(text) == {"acme": ["ci", "web", "new"], "globex": ["only"]}


def test_a_new_tenant_is_put_after_the_last() -> None:
    text = added(FILE, "initech", NEW)
    gone, _ = changes(FILE, text)
    assert gone == []
    assert names(text)["initech"] == ["new"]
    assert text.endswith("# the end\n")


def test_a_token_goes_with_its_own_lines_alone() -> None:
    gone, come = changes(FILE, removed(FILE, "acme", "web"))
    assert come == []
    assert [line.strip()[:7] for line in gone] == ["- name:", "sha256:", "scopes:"]
    assert "the web shop" in removed(FILE, "acme", "web")


def test_a_token_of_several_lines_goes_whole() -> None:
    assert names(removed(FILE, "acme", "ci")) == {"acme": ["web"], "globex": ["only"]}
    assert "# the web shop" in removed(FILE, "acme", "ci")


def test_the_last_token_of_a_tenant_leaves_an_empty_list() -> None:
    text = removed(FILE, "globex", "only")
    assert names(text) == {"acme": ["ci", "web"], "globex": []}
    assert "# the end" in text
    assert names(added(text, "globex", NEW)) == {"acme": ["ci", "web"], "globex": ["new"]}


@pytest.mark.parametrize(
    "text",
    [
        "tenants: []\n",
        "tenants: []  # nobody yet\n",
        "tenants:\n- id: acme\n",
        "tenants:\n- id: acme\n  tokens: []\n",
        "tenants: [{id: acme, tokens: []}]",
        'tenants:\n- id: acme\n  tokens: [{name: a, sha256: "' + "4" * 64 + '", scopes: [read]}] # flat\n',
        "tenants:\n-\n  id: other\n",
    ],
)
def test_a_file_of_any_style_takes_a_token_and_gives_it_back(text: str) -> None:
    there = added(text, "acme", NEW)
    assert names(there)["acme"][-1] == "new"
    assert ("#" in there) == ("#" in text)
    assert "new" not in names(removed(there, "acme", "new"))["acme"]


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(Conflict, match="has a token named 'web'"):
        added(FILE, "acme", replace(NEW, name="web"))


def test_what_is_not_there_cannot_be_removed() -> None:
    for tenant, name in (("acme", "only"), ("nobody", "ci")):
        with pytest.raises(NotFound):
            removed(FILE, tenant, name)


@pytest.mark.parametrize("wrong", [{"scopes": ("raed",)}, {"name": "a b"}, {"expires": "soon"}])
def test_an_entry_that_is_not_valid_is_never_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid):
        added(FILE, "acme", replace(NEW, **wrong))


def test_a_tenant_with_a_name_that_is_none_is_never_written() -> None:
    with pytest.raises(ConfigInvalid):
        added(FILE, "../x", NEW)


def test_a_file_that_is_not_valid_is_not_edited() -> None:
    with pytest.raises(ConfigInvalid):
        added("tenants: 5", "acme", NEW)


def new(name: str) -> TokenSection:
    return TokenSection(name=name, sha256=name.encode().hex().rjust(64, "0"), scopes=("read",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "tokens.yaml"


def test_the_first_edit_makes_a_file_for_its_owner_alone(path: Path) -> None:
    edit_tokens(path, lambda text: added(text, "acme", new("ci")))
    assert [token.name for token in read_tokens(path)[0].tokens] == ["ci"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("# Who may use")


def test_an_edit_keeps_the_files_mode_and_the_link_that_leads_to_it(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.yaml"
    real.write_text("tenants: []\n")
    real.chmod(0o640)
    path.parent.mkdir()
    path.symlink_to(real)
    edit_tokens(path, lambda text: added(text, "acme", new("ci")))
    assert path.is_symlink()
    assert read_tokens(real)
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_an_edit_that_fails_changes_nothing_and_leaves_nothing(path: Path) -> None:
    edit_tokens(path, lambda text: added(text, "acme", new("ci")))
    before = path.read_bytes()
    with pytest.raises(ConfigInvalid):
        edit_tokens(path, lambda text: added(text, "acme", new("a b")))
    path.write_bytes(before + b"more: 1\n")
    with pytest.raises(ConfigInvalid):
        edit_tokens(path, lambda text: added(text, "acme", new("web")))
    assert path.read_bytes() == before + b"more: 1\n"
    assert [each.name for each in path.parent.iterdir()] == ["tokens.yaml"]


def test_edits_at_the_same_time_all_count(path: Path) -> None:
    names = [f"t{number}" for number in range(12)]
    threads = [
        threading.Thread(target=edit_tokens, args=(path, lambda text, name=name: added(text, "acme", new(name))))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(token.name for token in read_tokens(path)[0].tokens) == sorted(names)
