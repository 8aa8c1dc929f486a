"""What is owed to the rows: as events, or packed as rows of the log while another process folds them."""

from __future__ import annotations

from collections import Counter

import pytest

from organism.log import folds as log_folds
from organism.log import owed as log_owed
from organism.log.batch import Intake
from organism.log.chain import Salts
from organism.log.encode import unfold
from organism.log.folds import Folds
from organism.log.heads import Heads
from organism.model.events import Event
from tests.log.engines import THREADS, created, sent, unit

LAST = 3 * 5
"""Five units of three events."""


class Owing:
    """Folds that are owed what is committed here."""

    def __init__(self) -> None:
        self.folds = Folds([THREADS], lambda _model, _key: None, 0)
        self._intake = Intake(Heads(lambda _: 0), Salts(bytes), 0)

    def commit(self, *, begin: int, end: int) -> None:
        """A commit of the units of these numbers."""
        for number in range(begin, end):
            texts = (sent(f"msg-{number}-a"), sent(f"msg-{number}-b"))
            self._intake.take(unit(f"thr-{number}", created(), *texts))
        self.folds.take(self._intake.swap())

    def threads(self) -> dict[str, int]:
        """How many messages each thread has by its row, once all is folded."""
        self.folds.settle()
        cache = self.folds.caches[THREADS.name]
        return {key: row["sent"] for key, row in {**cache.pending, **cache.dirty}.items()}


ALL = {f"thr-{number}": 2 for number in range(5)}


@pytest.fixture
def owing() -> Owing:
    return Owing()


@pytest.mark.parametrize("packed", [(), (0,), (1,), (0, 1)])
def test_what_was_packed_is_folded_like_anything_else(owing: Owing, packed: tuple[int, ...]) -> None:
    for number, (begin, end) in enumerate(((0, 3), (3, 5))):
        owing.folds.is_helped = number in packed
        owing.commit(begin=begin, end=end)
    assert owing.folds.owed.count() == LAST
    assert owing.threads() == ALL
    assert (owing.folds.owed.count(), owing.folds.position) == (0, LAST)


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many units became events, each time; two at a time."""
    made: list[int] = []

    def count(rows: list[tuple[int, bytes]], *more: object) -> tuple[list[Event], list[tuple[str, int, int]]]:
        made.append(len(rows))
        return unfold(rows, *more)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(log_owed, "unfold", count)
    monkeypatch.setattr(log_owed, "UNPACK_UNITS", 2)
    return made


def test_what_is_packed_is_no_event_until_it_is_asked_for(owing: Owing, unpacked: list[int]) -> None:
    owing.folds.is_helped = True
    owing.commit(begin=0, end=5)
    assert unpacked == []
    owing.folds.settle(4)
    assert (unpacked, owing.folds.position) == ([2], 4)
    assert owing.threads() == ALL
    assert unpacked == [2, 2, 1]


def test_what_is_passed_by_never_becomes_an_event(owing: Owing, unpacked: list[int]) -> None:
    owing.folds.is_helped = True
    owing.commit(begin=0, end=5)
    owing.folds.reached(LAST - 3, {})
    assert owing.threads() == {"thr-4": 2}
    assert unpacked == [1]


def test_who_asks_for_rows_again_and_again_finds_events(owing: Owing, monkeypatch: pytest.MonkeyPatch) -> None:
    owing.folds.is_helped = True
    owing.commit(begin=0, end=3)
    owing.folds.settle()
    monkeypatch.setattr(log_owed, "unfold", None)  # it would raise
    owing.commit(begin=3, end=5)
    assert owing.threads() == ALL


@pytest.mark.parametrize("reached", range(LAST + 1))
def test_what_another_process_folded_is_passed_by_wherever_it_stopped(owing: Owing, reached: int) -> None:
    owing.commit(begin=0, end=1)
    owing.folds.is_helped = True
    owing.commit(begin=1, end=5)
    owing.folds.reached(reached, {})
    assert owing.folds.owed.count() == LAST - reached
    places = [divmod(position - 1, 3) for position in range(reached + 1, LAST + 1)]
    assert owing.threads() == Counter(f"thr-{number}" for number, place in places if place)
    assert owing.folds.position == LAST


def test_what_another_process_reached_beyond_what_is_known_here_is_where_it_goes_on(owing: Owing) -> None:
    owing.folds.is_helped = True
    owing.commit(begin=0, end=5)
    owing.folds.reached(LAST + 10, {})
    assert (owing.folds.owed.count(), owing.folds.position, owing.threads()) == (0, LAST + 10, {})


def test_so_much_may_wait_and_more_while_it_is_another_processs_work(
    owing: Owing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_folds, "MOST_OWED", LAST)
    monkeypatch.setattr(log_folds, "MOST_UNREAD", LAST + 1)
    owing.commit(begin=0, end=4)
    assert not owing.folds.is_overdue()
    owing.commit(begin=4, end=5)
    assert owing.folds.is_overdue()
    owing.folds.is_helped = True
    assert not owing.folds.is_overdue()
    owing.commit(begin=5, end=6)
    assert owing.folds.is_overdue()
