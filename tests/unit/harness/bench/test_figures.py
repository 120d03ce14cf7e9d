"""Medians, ratios and floors from readings."""

import json

import pytest

from windtunnel.harness.bench.figures import (
    DEFAULT_FLOORS,
    FIGURES,
    NAMES,
    Comparison,
    compare,
    read_floors,
)
from windtunnel.harness.bench.measure import PERCENTILES, Reading
from windtunnel.harness.bench.plan import CASES

STREAM = {"messages": 0.0, "megabytes": 1.0, "processor": 2.0, "rss": 3.0}


def reading(driver: str, rate: float, case: str = "udp-32", void: str = "") -> Reading:
    return Reading(driver, case, 0, {} if void else STREAM | {"messages": rate}, void)


def throughput(readings, floors=None, name="udp-32") -> Comparison:
    found = compare(readings, DEFAULT_FLOORS if floors is None else floors)
    return next(each for each in found if each.figure.name == name)


def test_compares_medians():
    rates = {"ours": (10, 900, 30), "c": (5, 20, 1)}
    made = throughput([reading(who, rate) for who in rates for rate in rates[who]])
    assert (made.ours.median, made.ours.least, made.ours.most) == (30, 10, 900)
    assert (made.peer.median, made.peer.least, made.peer.most) == (5, 1, 20)
    assert made.ratio == 6


def test_void_readings_are_ignored():
    made = throughput([reading("ours", 8), reading("ours", 0, void="lost"), reading("c", 4)])
    assert made.ours.values == (8,)
    assert made.ratio == 2


@pytest.mark.parametrize(
    "readings",
    [
        [reading("ours", 8)],
        [reading("c", 8)],
        [reading("ours", 8), reading("c", 8, void="lost")],
        [reading("ours", 8), reading("c", 0)],
    ],
    ids=["no C", "none of ours", "void C", "C did nothing"],
)
def test_without_both_there_is_no_ratio_and_no_floor_holds(readings):
    made = throughput(readings)
    assert made.ratio is None
    assert made.holds is False
    assert throughput(readings, floors={}).holds is None


@pytest.mark.parametrize(("ours", "holds"), [(30, True), (29, False)])
def test_where_more_is_better_a_floor_is_the_least(ours, holds):
    assert throughput([reading("ours", ours), reading("c", 10)], {"udp-32": 3.0}).holds is holds


@pytest.mark.parametrize(("ours", "holds"), [(15, True), (16, False)])
def test_where_less_is_better_a_floor_is_the_most(ours, holds):
    values = dict.fromkeys(PERCENTILES, 10.0) | {"rss": 1.0}
    readings = [
        Reading("ours", "rtt-udp", 0, values | {"p50": ours}),
        Reading("c", "rtt-udp", 0, values),
    ]
    assert throughput(readings, {"rtt-udp-p50": 1.5}, "rtt-udp-p50").holds is holds


def test_only_cases_that_were_measured_have_figures():
    assert {each.figure.case for each in compare([reading("c", 1)], {})} == {"udp-32"}
    assert compare([], DEFAULT_FLOORS) == []


def test_every_case_has_figures_of_different_names():
    assert len(set(NAMES)) == len(NAMES)
    assert {figure.case for figure in FIGURES} == {case.name for case in CASES}


def test_an_archive_is_compared_with_javas():
    values = {f"{way}-messages": 1.0 for way in ("record", "replay")}
    values |= {f"{way}-{name}": 1.0 for way in ("record", "replay") for name in ("megabytes",)}
    values |= {f"{way}-processor": 1.0 for way in ("record", "replay")}
    readings = [
        Reading("ours", "archive-1344", 0, values | {"replay-messages": 3.0}),
        Reading("java", "archive-1344", 0, values | {"replay-messages": 2.0}),
    ]
    made = {each.figure.name: each for each in compare(readings, DEFAULT_FLOORS)}
    assert list(made) == [
        f"archive-1344-{way}{suffix}"
        for way in ("record", "replay")
        for suffix in ("", "-mb", "-cpu")
    ]
    assert {each.figure.peer for each in made.values()} == {"java"}
    assert (made["archive-1344-replay"].ratio, made["archive-1344-replay"].holds) == (1.5, True)
    assert (made["archive-1344-record"].ratio, made["archive-1344-record"].floor) == (1.0, 1.0)


def test_without_java_its_floor_is_not_met():
    values = dict.fromkeys(("messages", "megabytes", "processor"), 1.0)
    both = {
        f"{way}-{name}": value for way in ("record", "replay") for name, value in values.items()
    }
    made = throughput([Reading("ours", "archive-1344", 0, both)], name="archive-1344-record")
    assert (made.ratio, made.holds) == (None, False)


def test_floors_are_changed_by_name_and_by_file(tmp_path):
    file = tmp_path / "floors.json"
    file.write_text(json.dumps({"udp-32": 2, "startup": 9.5}))
    floors = read_floors([str(file), "udp-1344=20", "udp-32=0.5"])
    assert floors == DEFAULT_FLOORS | {"udp-32": 0.5, "udp-1344": 20.0, "startup": 9.5}
    assert read_floors([]) == DEFAULT_FLOORS


@pytest.mark.parametrize("text", ["udp-33=1", "udp-32=", "udp-32=0", "udp-32=-1", "udp-32=inf"])
def test_rejects_invalid_floors(text):
    with pytest.raises(ValueError, match="udp-3"):
        read_floors([text])


@pytest.mark.parametrize("content", ["[]", "{", '{"udp-32": null}', '{"udp-33": 1}'])
def test_rejects_files_without_floors(tmp_path, content):
    file = tmp_path / "floors.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"floors\.json|udp-3"):
        read_floors([str(file)])


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        read_floors([str(tmp_path / "none.json")])
