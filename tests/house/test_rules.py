"""The house walks the tree: each rule looks at every file, and each rule is shown what it must and must not find."""

from __future__ import annotations

import pytest

from tests.house.rules import habits, purity, safety, words
from tests.house.tree import Rule, Source, read_repository

RULES = (*words.RULES, *habits.RULES, *safety.RULES, *purity.RULES)
SENTENCES = [rule.sentence for rule in RULES]


@pytest.fixture(scope="module")
def repository() -> tuple[Source, ...]:
    return read_repository()


@pytest.mark.parametrize("rule", RULES, ids=SENTENCES)
def test_the_house_is_kept(rule: Rule, repository: tuple[Source, ...]) -> None:
    findings = [str(finding) for finding in rule.look(repository)]
    if findings:
        pytest.fail(f"The house says: {rule.sentence}.\n" + "\n".join(findings), pytrace=False)


@pytest.mark.parametrize("rule", RULES, ids=SENTENCES)
def test_each_rule_finds_what_breaks_it(rule: Rule) -> None:
    unseen = [bad for bad in rule.bad if not list(rule.look([bad]))]
    assert rule.bad
    assert not unseen


@pytest.mark.parametrize("rule", RULES, ids=SENTENCES)
def test_no_rule_finds_what_keeps_it(rule: Rule) -> None:
    findings = [str(finding) for good in rule.good for finding in rule.look([good])]
    assert not findings


def test_the_walk_reaches_the_code_and_its_tests(repository: tuple[Source, ...]) -> None:
    paths = {source.path for source in repository}
    assert {"organism/errors.py", "tests/house/test_rules.py", "scripts/test", "pyproject.toml"} <= paths
