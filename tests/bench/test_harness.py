"""The arithmetic of the bench: no benchmark is run here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import table
from bench.__main__ import asked_for, main, measure_all, options
from bench.arithmetic import Better, Bounds, Verdict, counting, ratios, short, spread, verdict, was_busy
from bench.growth import DRAWING
from bench.harness import Effort, ProgramFailed, measurement
from bench.load import WARM_UP_SECONDS, Load, Measurement, measure_hops, percentiles_us
from bench.places import PAGE
from bench.results import Kept, Store, lines
from bench.rows import OWN_ENVIRONMENT, PAIRS, Figure, Pair, Program, Row, Side
from bench.usage import CPU_US, LOOP_US, OTHERS_SHARE, QUEUE_SHARE

FAST = Bounds(must=10, aim=15)
SMALL = Bounds(must=5, aim=3.5, better=Better.LOWER)

RATIO = Row("hops / theirs", Figure(Side.OURS), Figure(Side.RIVAL), FAST)
TAIL = Row("p99 / p50", Figure(Side.OURS, "p99_us"), Figure(Side.OURS, "p50_us"), SMALL)
ALONE = Row("memory", Figure(Side.OURS), None, SMALL, "KiB")
SEEN = Row("the same / another", Figure(Side.OURS), Figure(Side.RIVAL, "other"), None)
PAIR = Pair("some", Program("ours"), Program("theirs", "somewhere"), (RATIO, TAIL, ALONE, SEEN))


def measured(ours: float, theirs: float) -> dict[Side, Measurement]:
    return {
        Side.OURS: Measurement("ours", "hops/s", ours, {"p50_us": 100.0, "p99_us": ours}),
        Side.RIVAL: Measurement("theirs", "hops/s", theirs, {"other": 2 * theirs}),
    }


def waiting(ours: float, *shares: float) -> dict[Side, Measurement]:
    """A round in which ours did so much, and others kept each side waiting for a core for so long."""
    sides = measured(ours, 1)
    for side, share in zip(sides.values(), shares, strict=True):
        side.also.update({LOOP_US: 100 * ours, CPU_US: 150 * ours, QUEUE_SHARE: share, OTHERS_SHARE: 0.5})
    return sides


def test_the_median_of_an_even_number_of_rounds_lies_between_the_middle_two() -> None:
    assert spread([4.0, 1.0, 2.0, 100.0]).median == 3.0


def test_a_spread_names_the_lowest_and_the_highest_round() -> None:
    assert (spread([4.0, 1.0, 9.0]).low, spread([4.0, 1.0, 9.0]).high) == (1.0, 9.0)


def test_no_round_has_no_spread() -> None:
    with pytest.raises(ValueError, match="at least one round"):
        spread([])


def test_each_round_is_compared_with_its_own_partner() -> None:
    assert ratios([10.0, 40.0], [1.0, 2.0]) == [10.0, 20.0]


def test_a_round_without_a_partner_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratios([10.0, 40.0], [1.0])


@pytest.mark.parametrize(
    ("value", "bounds", "expected"),
    [
        (15.0, FAST, Verdict.AIM),
        (14.9, FAST, Verdict.MUST),
        (10.0, FAST, Verdict.MUST),
        (9.99, FAST, Verdict.MISSED),
        (3.5, SMALL, Verdict.AIM),
        (3.6, SMALL, Verdict.MUST),
        (5.0, SMALL, Verdict.MUST),
        (5.1, SMALL, Verdict.MISSED),
        (0.0, None, Verdict.SHOWN),
    ],
)
def test_a_figure_that_equals_its_bound_has_met_it(value: float, bounds: Bounds | None, expected: Verdict) -> None:
    assert verdict(value, bounds) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0"), (0.20345, "0.203"), (14.52, "14.5"), (999.4, "999"), (21_349, "21,300"), (1_400, "1,400")],
)
def test_a_figure_is_shown_with_three_digits_that_count(value: float, expected: str) -> None:
    assert short(value) == expected


class Watch:
    """A clock that the chains move on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_the_rate_is_that_of_the_whole_chains_after_the_warm_up() -> None:
    watch, begun = Watch(), []

    async def chain(key: str) -> None:
        begun.append(key)
        watch.now += 2.0

    load = Load(chain, in_flight=1, seconds=WARM_UP_SECONDS + 4.5, clock=watch)
    await load.run()
    assert begun == ["0-0", "0-1", "0-2"]
    assert (load.chains_a_second, load.latencies) == (0.5, [2.0, 2.0])


async def test_a_chain_that_outlasts_the_round_is_measured_whole() -> None:
    watch = Watch()

    async def chain(key: str) -> None:
        watch.now += 10.0

    load = Load(chain, in_flight=1, seconds=1.0, clock=watch)
    await load.run()
    assert (load.chains_a_second, load.latencies) == (0.1, [10.0])


async def test_a_slot_that_was_measured_keeps_up_the_load_until_the_last_one_was() -> None:
    watch, begun = Watch(), []

    async def chain(key: str) -> None:
        begun.append(key)
        watch.now += 10.0

    load = Load(chain, in_flight=2, seconds=1.0, clock=watch)
    await load.run()
    assert begun == ["0-0", "0-1", "0-2", "1-0"]
    assert load.latencies == [10.0, 10.0]


async def test_a_load_tells_what_its_hops_used_of_a_processor() -> None:
    async def chain(key: str) -> None:
        """Ends at once."""

    measurement = await measure_hops("nothing", chain, in_flight=2, seconds=0.01)
    used = measurement.also
    assert used[LOOP_US] > 0
    assert used[CPU_US] > 0
    assert used[QUEUE_SHARE] >= 0


def test_percentiles_are_nearest_ranks_in_microseconds() -> None:
    seconds = [number / 1e6 for number in range(101, 0, -1)]
    assert percentiles_us(seconds) == pytest.approx({"p50_us": 51.0, "p99_us": 100.0})


def test_the_ratio_of_a_row_is_the_median_of_the_ratios_and_not_the_ratio_of_the_medians() -> None:
    rounds = [measured(10, 1), measured(30, 2), measured(20, 4)]
    assert lines(PAIR, rounds)[0].ratio.median == 10.0


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([False], [0]),
        ([False, False, False], [0, 1, 2]),
        ([True, False, False, True, False], [1, 2, 4]),
        ([True, False, False], None),
        ([False, True], None),
        ([True], None),
    ],
)
def test_three_rounds_without_a_mark_count_for_themselves(marks: list[bool], expected: list[int] | None) -> None:
    assert counting(marks) == expected


@pytest.mark.parametrize(
    ("waited", "others", "expected"),
    [(0.21, 0.11, True), (0.2, 0.5, False), (0.6, 0.1, False), (0.0, 0.5, False)],
)
def test_a_side_that_waits_for_its_own_processes_alone_is_not_marked(
    waited: float, others: float, *, expected: bool
) -> None:
    assert was_busy(waited, others) is expected


def test_a_row_rests_on_the_rounds_in_which_neither_side_waited_for_a_core() -> None:
    rounds = [waiting(ours, 0.1, theirs) for ours, theirs in ((1, 0.1), (99, 0.21), (2, 0.2), (3, 0.0))]
    line = lines(PAIR, rounds)[0]
    assert (line.ratio.median, line.quiet, line.rounds, line.is_busy) == (2, 3, 4, False)
    assert table.cells(line)[4:7] == ("200; 300", "200; 300", "10% (50%); 10% (50%); 3 of 4 rounds quiet")


def test_a_row_with_too_few_quiet_rounds_says_busy_and_rests_on_all_of_them() -> None:
    line = lines(PAIR, [waiting(1, 0.1, 0.1), waiting(2, 0.3, 0.1), waiting(9, 0.1, 0.3)])[0]
    assert table.cells(line)[1] == "*busy* 2 (1 to 9)"
    assert table.cells(line)[6] == "10% (50%); 10% (50%); 1 of 3 rounds quiet"


def test_a_row_of_one_side_is_not_marked_for_what_the_other_waited() -> None:
    line = lines(PAIR, [waiting(8, 0.1, 0.9)])[1]
    assert not line.is_busy
    assert table.cells(line)[4:7] == ("800; 1,200", "", "10% (50%)")


def test_what_a_load_used_is_not_told_of_another_load_of_the_same_round() -> None:
    line = lines(PAIR, [waiting(8, 0.1, 0.1)])[3]
    assert table.cells(line)[4:7] == ("800; 1,200", "", "10% (50%)")


def test_a_row_can_compare_two_figures_of_one_side() -> None:
    assert lines(PAIR, [measured(300, 1)])[1].ratio.median == 3.0


def test_a_row_without_a_rival_shows_the_figure_itself() -> None:
    line = lines(PAIR, [measured(4, 1)])[2]
    assert table.cells(line) == ("memory", "4 KiB", "", "", "", "", "", "≤ 5 KiB", "≤ 3.5 KiB", "must met")


def test_a_row_without_bounds_is_shown_and_not_judged() -> None:
    line = lines(PAIR, [measured(4, 1)])[3]
    assert table.cells(line) == ("the same / another", "2", "4", "2", "", "", "", "", "", "no bound")


def test_a_spread_stands_beside_its_median() -> None:
    line = lines(PAIR, [measured(10, 1), measured(30, 2), measured(80, 4)])[0]
    assert table.cells(line)[1:4] == ("15 (10 to 20)", "30 (10 to 80)", "2 (1 to 4)")


def test_a_missed_bound_is_bold_in_the_page() -> None:
    rows = table.markdown(lines(PAIR, [measured(9, 1)])).splitlines()
    assert rows[2] == "| hops / theirs | 9 | 9 | 1 |  |  |  | ≥ 10 | ≥ 15 | **MISSED** |"


def test_every_line_of_the_page_has_as_many_cells_as_headings() -> None:
    rows = table.markdown(lines(PAIR, [measured(9, 1), measured(8, 2)])).splitlines()
    assert {row.count("|") for row in rows} == {len(table.HEADINGS) + 1}


def test_the_page_keeps_what_lies_around_its_markers() -> None:
    page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter"
    assert table.between_markers(page, "new") == f"before\n{table.BEGIN}\n\nnew\n\n{table.END}\nafter"


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="bench: begin"):
        table.between_markers(f"{table.END} the wrong way round {table.BEGIN}", "new")


def test_the_page_of_the_repository_has_room_for_the_table() -> None:
    assert "| new |" in table.between_markers(PAGE.read_text("utf-8"), "| new |")


def test_rounds_that_were_kept_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    kept = Kept([measured(10, 1), measured(30, 2)], "2026-01-31", is_quick=True)
    store.save(PAIR, kept)
    assert store.load(PAIR) == kept


def test_a_pair_that_never_ran_has_no_rounds(tmp_path: Path) -> None:
    assert Store(tmp_path).load(PAIR).rounds == []


def test_the_last_line_that_a_program_prints_is_its_measurement() -> None:
    line = Measurement("theirs", "hops/s", 3.0, {"p50_us": 1.0}).line()
    assert measurement(PAIR.ours, f"some chatter\n{line}\n\n") == Measurement("theirs", "hops/s", 3.0, {"p50_us": 1.0})


@pytest.mark.parametrize("output", ["", "chatter", json.dumps([1]), json.dumps({"value": 1, "colour": "red"})])
def test_a_program_without_a_measurement_is_named(output: str) -> None:
    with pytest.raises(ProgramFailed, match="ours: expected one line of JSON"):
        measurement(PAIR.ours, output)


def test_what_is_not_to_be_had_here_is_skipped_and_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = Pair("some", Program("theirs", "nowhere"), None, (RATIO,))
    assert measure_all([pair], Effort(1, 0.1, is_quick=True), Store(tmp_path)) == []
    assert "some skipped: The environment nowhere is not there" in capsys.readouterr().err


def test_pairs_can_be_named_by_a_pattern() -> None:
    names = [pair.name for pair in asked_for(options(["--only", "door-dbos-files-*", "--only", "dbos"]))]
    assert names == ["door-dbos-files-1", "door-dbos-files-16", "door-dbos-files-64", "dbos"]


def test_a_name_of_no_pair_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options(["--only", "nobody-*"])
    assert "expected the name of a pair, got 'nobody-*'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--only", "xml-pipeline-general"], "xml_pipeline\n"),
        (["--only", "door-restate-*", "--only", "dbos"], "dbos restate\n"),
        (["--only", "latency"], "\n"),
        (["--show"], "\n"),
    ],
)
def test_the_environments_are_those_of_the_pairs_that_will_be_measured(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--environments", *arguments]) == 0
    assert capsys.readouterr().out == expected


def test_every_pair_has_a_name_of_its_own() -> None:
    names = [pair.name for pair in PAIRS]
    assert len(names) == len(set(names))


def test_every_environment_of_a_rival_is_pinned() -> None:
    programs = [program for pair in PAIRS for program in (pair.rival, pair.prepare) if program]
    places = {program.environment for program in programs} - {OWN_ENVIRONMENT}
    pinned = {path.stem for path in (Path(table.__file__).parent / "rivals" / "requirements").glob("*.txt")}
    assert places | {DRAWING} == pinned
