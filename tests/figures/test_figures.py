"""Figures of an analysis agree with the records of the applications and the middlebox."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.figures.account import DROP, DUPLICATE, Decision, Reader, read_account
from tests.figures.comparison import compare, compare_text
from tests.figures.random_run import differences_of, run_document, vantage_points
from tests.figures.random_scenario import random_document
from tests.figures.result_comparison import compare_results
from windtunnel.harness.replay.fewest import fewest
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.output.summary import summary_lines

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

LOSSY_SEED = 3
WRONG = {
    ("flows", "messages"): "messages",
    ("flows", "naks"): "naks",
    ("flows", "lost_bytes_max"): "lost bytes",
    ("flows", "high_position"): "high_position",
    ("flows", "resent_bytes"): "resent_bytes",
    ("flows", "rebuilt_position"): "rebuilt_position",
    ("flows", "first_frames"): "first_frames",
    ("flows", "first_bytes"): "first_bytes",
    ("streams", "data_frames"): "data_frames",
    ("streams", "mtu"): "mtu",
    ("streams", "term_length"): "term_length",
    ("streams", "status_messages"): "status_messages",
    ("captures", "packets"): "packets",
    ("captures", "frames"): "frames",
    ("images", "message_bytes"): "message_bytes",
    ("images", "crc32"): "crc32",
    ("messages", "crc32"): "rows of messages",
    ("windows", "window_max"): "window_max",
    ("links", "sent_frames"): "sent_frames",
    ("links", "lost_frames"): "lost_frames",
    ("links", "lost_bytes"): "lost_bytes",
    ("links", "copied_frames"): "copied_frames",
    ("links", "control_lost"): "control_lost",
    ("links", "status_lost"): "status_lost",
    ("links", "delay_min_ns"): "delay_min_ns",
}
"""Figures by table and column, and the name under which the comparison reports them."""
RESULTS = (
    "published_messages",
    "delivered_messages",
    "delivered_bytes",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "longest_silence_ns",
    "finished_ns",
    "reached_bytes_per_s",
    "reached_messages_per_s",
    "naks",
    "resent_frames",
    "resent_bytes",
)
"""Compared figures of result rows."""


def smallest(document, folder: Path, differ=differences_of):
    """Return a description of the smallest scenario that still has a difference."""
    count = 0

    def differs(faults):
        nonlocal count
        count += 1
        tried = folder / str(count)
        tried.mkdir()
        return bool(differ({**document, "faults": list(faults)}, tried))

    return {**document, "faults": list(fewest(document["faults"], differs))}


def check(seed: int, folder: Path, fidelity: str = "sim") -> None:
    document = random_document(seed, fidelity)
    found = differences_of(document, folder)
    if found:
        shown = smallest(document, folder)
        pytest.fail("\n".join([*found, f"smallest scenario: {shown}"]))


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", [*range(1, 11), 50018, 50054, 50078, 50444])
def test_figures_of_random_scenarios_agree_with_the_records(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("seed", [*range(11, 21), 51080, *range(1_001, 1_301)])
def test_figures_of_many_random_scenarios_agree_with_the_records(seed, tmp_path):
    check(seed, tmp_path)


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    """Return the account of a run with losses, the analysis of its captures, and its results."""
    document = random_document(LOSSY_SEED)
    run = run_document(document, tmp_path_factory.mktemp("lossy"))
    hosts = vantage_points(document)[-1]
    paths = [f"{host}={run.capture(host)}" for host in hosts]
    tables = analyze(paths, options=AnalysisOptions(messages=True))
    return read_account(run.path), tables, json.loads(run.verdict.read_text())["results"]


@pytest.mark.parametrize("place", WRONG, ids=".".join)
def test_a_wrong_figure_is_reported(lossy, place):
    account, tables, _ = lossy
    rows = {name: table.to_pylist() for name, table in tables.named().items()}
    assert compare(rows, account) == []
    name, column = place
    wrong = copy.deepcopy(rows)
    for row in wrong[name]:
        row[column] += 10_000_000
    assert any(WRONG[place] in each for each in compare(wrong, account))


def test_a_wrong_figure_in_the_text_is_reported(lossy):
    account, tables, _ = lossy
    lines = summary_lines(tables)
    assert compare_text(lines, account) == []
    for old, new in ((" messages to", "9 messages to"), (": lost ", ": lost 9")):
        assert any(old in each for each in lines)
        assert compare_text([each.replace(old, new) for each in lines], account) != []


@pytest.mark.parametrize("name", RESULTS)
def test_a_wrong_figure_in_a_result_row_is_reported(lossy, name):
    account, _, results = lossy
    assert compare_results(results, account) == []
    wrong = [{**row, name: row[name] * 2 + 1} for row in results]
    assert any(name.split("_")[0] in each for each in compare_results(wrong, account))


def test_a_wrong_number_of_lost_frames_in_a_result_row_is_reported(lossy):
    account, _, results = lossy
    reader = account.readers["b"]
    known = [each for each in reader.decisions if each.action != DUPLICATE]
    account = replace(account, readers={"b": replace(reader, decisions=known)})
    lost = {"lost_frames": len(reader.dropped), "lost_bytes": sum(e.length for e in reader.dropped)}
    assert compare_results([{**row, **lost} for row in results], account) == []
    for name in lost:
        wrong = [{**row, **lost, name: lost[name] + 1} for row in results]
        assert any("lost: printed" in each for each in compare_results(wrong, account))


@pytest.mark.parametrize(
    ("lost", "read_ns", "unseen"),
    [
        ([0], [1, 2, 2], 100),  # repaired before the next frame arrived
        ([0], [2, 2, 2], 0),  # repaired after it
        ([0, 100], [1, 1, 2], 200),  # neither of two lost frames reveals the other
        ([0, 100], [1, 2, 2], 100),
        ([0, 100], [1, 1], 200),  # no frame followed
    ],
)
def test_a_loss_is_detected_only_by_a_later_frame_that_was_not_lost(lost, read_ns, unseen):
    frames = {100 * index: (100, 1, time_ns) for index, time_ns in enumerate(read_ns)}
    dropped = [Decision(0, 1, False, DROP, "a->b", position, 100, 1) for position in lost]
    reader = Reader("b", [], [], [], 0, frames, {}, dropped, 0, 0, {}, {})
    assert reader.unseen_bytes == unseen


def test_a_failure_is_reduced_to_the_faults_that_cause_it(tmp_path):
    document = {"faults": [{"id": each} for each in ("drop", "swap", "hold")]}

    def differ(tried, _folder):
        return ["differs"] if {"id": "swap"} in tried["faults"] else []

    assert smallest(document, tmp_path, differ)["faults"] == [{"id": "swap"}]
