"""config/tokens.yaml: what is taken, what is refused with which line."""

from __future__ import annotations

from pathlib import Path

import pytest

from organism.config.faults import MAX_FILE_BYTES
from organism.config.tokens import TenantEntry, parse_tokens, read_tokens
from organism.errors import ConfigInvalid

FIRST, SECOND = "ab" * 32, "cd" * 32
WHOLE = f"""
tenants:
  - id: default
  - id: acme
    defaults: {{on_busy: queue, budget: {{day: {{calls: 5}}}}}}
    tokens:
      - name: ci
        sha256: "{FIRST}"
        scopes: [read, "inject:agent:greeter"]
        models: [small, large]
        tenant_admin: true
        expires: 2027-01-01T01:00:00+01:00
        rate: 7
      - {{name: all, sha256: "{SECOND}", scopes: [admin]}}
"""


def tenant(text: str, tenant_id: str = "acme") -> TenantEntry:
    return next(each for each in parse_tokens(text) if each.id == tenant_id)


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(ConfigInvalid) as refused:
        parse_tokens(text)
    return [(fault.pointer, fault.message) for fault in refused.value.details]


def one(**fields: str) -> str:
    """A file of one token, whose fields can be changed."""
    given = {"name": "x", "sha256": f'"{FIRST}"', "scopes": "[read]", **fields}
    return "tenants:\n- id: acme\n  tokens:\n  - {" + ", ".join(f"{key}: {said}" for key, said in given.items()) + "}\n"


def test_every_key_of_the_file_is_taken() -> None:
    acme = tenant(WHOLE)
    who = acme.tokens[0]
    assert acme.tokens[0].credential.hex() == FIRST
    assert acme.defaults == {"on_busy": "queue", "budget": {"day": {"calls": 5}}}
    assert (who.tenant, who.name, who.is_tenant_admin, who.rate) == ("acme", "ci", True, 7)
    assert who.grants == {"read", "inject:agent:greeter"}
    assert who.models == frozenset(("small", "large"))
    assert who.ends == 1_798_761_600.0


def test_what_is_left_out_has_its_default() -> None:
    who = tenant(one()).tokens[0]
    assert (who.models, who.is_tenant_admin, who.ends, who.rate_or(20)) == (None, False, None, 20)
    assert tenant(WHOLE, "default").tokens == ()


def test_an_admins_token_has_no_rate_unless_it_is_given() -> None:
    assert tenant(one(scopes="[read, admin]")).tokens[0].rate_or(20) is None
    assert tenant(one(scopes="[admin]", rate="3")).tokens[0].rate_or(20) == 3
    assert tenant(one(scopes='["admin:agent:greeter"]')).tokens[0].rate_or(20) == 20


def test_a_star_stands_for_every_model_and_an_empty_list_for_none() -> None:
    assert tenant(one(models='["*"]')).tokens[0].models is None
    assert tenant(one(models="[]")).tokens[0].models == frozenset()


@pytest.mark.parametrize(
    ("wrong", "key", "said"),
    [
        ({"scopes": "[raed]"}, "scopes[0]", "did you mean `read`?"),
        ({"scopes": '["inject:greeter"]'}, "scopes[0]", "expected inject:KIND:NAME"),
        ({"scopes": '["inject:agent:"]'}, "scopes[0]", "expected inject:KIND:NAME"),
        ({"scopes": '["read\\n"]'}, "scopes[0]", "there is no scope"),
        ({"scopes": '["dance"]'}, "scopes[0]", "there are read, inject"),
        ({"scopes": "read"}, "scopes", "expected a list"),
        ({"sha256": "12"}, "sha256", "put it in quotes"),
        ({"sha256": f'"{FIRST.upper()}"'}, "sha256", "64 small hex digits"),
        ({"sha256": "org_x_12"}, "sha256", "`organism token create` makes it"),
        ({"name": "a b"}, "name", "a token's name"),
        ({"name": "operator"}, "name", "the server makes by itself"),
        ({"expires": "2027-01-01"}, "expires", "a time with its offset"),
        ({"expires": "2027-01-01T00:00:00"}, "expires", "a time with its offset"),
        ({"expires": "soon"}, "expires", "a time with its offset"),
        ({"rate": "0"}, "rate", "at least 1"),
        ({"tenant_admin": "maybe"}, "tenant_admin", "true or false"),
        ({"scpes": "[]"}, "scpes", "did you mean `scopes`?"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_with_its_line_and_key(wrong: dict[str, str], key: str, said: str) -> None:
    [(pointer, message)] = faults(one(**wrong))
    assert pointer == f"tokens.yaml:4:tenants[0].tokens[0].{key}"
    assert said in message


def test_all_faults_are_reported_at_once_in_the_order_of_their_lines() -> None:
    text = f"""\
tenants:
  - id: ../etc
    tokens: [5]
  - id: acme
    tokens:
      - name: x
        sha256: "{FIRST}"
        scopes: [read]
      - name: x
        sha256: "{FIRST}"
  - id: acme
more: 1
"""
    assert [pointer for pointer, _ in faults(text)] == [
        "tokens.yaml:2:tenants[0].id",
        "tokens.yaml:3:tenants[0].tokens[0]",
        "tokens.yaml:9:tenants[1].tokens[1].scopes",
        "tokens.yaml:9:tenants[1].tokens[1].name",
        "tokens.yaml:10:tenants[1].tokens[1].sha256",
        "tokens.yaml:11:tenants[2].id",
        "tokens.yaml:12:more",
    ]


def test_two_tenants_may_have_tokens_of_one_name() -> None:
    text = one() + one(sha256=f'"{SECOND}"').replace("tenants:\n", "").replace("acme", "globex")
    assert [each.tokens[0].name for each in parse_tokens(text)] == ["x", "x"]


@pytest.mark.parametrize(
    "text", ["", "# nobody\n", "tenants: {}", "- id: a", "tenants: &a [*a]", "tenants: []\ntenants: []"]
)
def test_what_is_no_such_file_is_refused(text: str) -> None:
    assert faults(text)


def test_no_file_means_no_tenants(tmp_path: Path) -> None:
    assert read_tokens(tmp_path / "config" / "tokens.yaml") == ()


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text("tenants: []" + " " * MAX_FILE_BYTES)
    with pytest.raises(ConfigInvalid, match=r"tokens\.yaml"):
        read_tokens(path)


@pytest.mark.parametrize("opened", ["tokens.yaml", "."])
def test_a_file_that_everyone_can_change_is_refused_with_its_remedy(tmp_path: Path, opened: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(WHOLE)
    path.chmod(0o664)
    assert len(read_tokens(path)) == 2
    (tmp_path / opened).chmod(0o777)
    with pytest.raises(ConfigInvalid) as refused:
        read_tokens(path)
    [fault] = refused.value.details
    assert fault.pointer == "tokens.yaml:1"
    assert fault.message == f"every user of this machine can change it; chmod o-w {tmp_path / opened}"
