"""The loss report counts each byte that NAKs asked for once, and names the stream."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.verdict.checks.counters.loss_reports import LENGTH_MAX, loss_report_agrees
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome


def look(run):
    return loss_report_agrees(Evidence(run.write()), run.traffic)


@pytest.mark.parametrize("reliable", [True, False])
def test_a_report_of_all_gaps_is_a_pass(tmp_path, reliable):
    run = make_run(tmp_path, reliable=reliable)
    finding = look(run)
    assert finding.outcome is Outcome.PASS, finding.text
    assert finding.facts["lost"] == finding.facts["most"] == sum(run.lost) > 0


@pytest.mark.parametrize("reliable", [True, False])
def test_a_gap_that_is_reported_twice_is_found(tmp_path, reliable):
    run = make_run(tmp_path, reliable=reliable)
    most = sum(run.lost)
    run.lost.append(run.lost[0])
    finding = look(run)
    assert finding.outcome is Outcome.FAIL
    assert f"has {most + run.lost[0]} bytes" in finding.text
    assert f"to {most} according" in finding.text


def test_a_gap_that_is_not_reported_is_found(tmp_path):
    run = make_run(tmp_path)
    least = sum(run.lost)
    del run.lost[0]
    finding = look(run)
    assert finding.outcome is Outcome.FAIL
    assert f"expected {least} to {least} according" in finding.text


def test_an_empty_report_is_found(tmp_path):
    run = make_run(tmp_path)
    run.lost.clear()
    assert "has 0 bytes" in look(run).text


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [(b"aeron:udp", b"aeron:ipc", "has channel 'aeron:ipc"), (b":40", b":41", "has source '")],
)
def test_a_wrong_name_is_found(tmp_path, old, new, text):
    run = make_run(tmp_path)
    folder = run.write()
    report = run.folder.host("b").loss_report
    assert old in report.read_bytes()
    report.write_bytes(report.read_bytes().replace(old, new))
    finding = loss_report_agrees(Evidence(folder), run.traffic)
    assert finding.outcome is Outcome.FAIL
    assert text in finding.text


def test_a_missing_report_is_inconclusive(tmp_path):
    run = make_run(tmp_path)
    folder = run.write()
    run.folder.host("b").loss_report.unlink()
    assert loss_report_agrees(Evidence(folder), run.traffic).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("change", [lambda old: old[:-4], lambda old: old + bytes(LENGTH_MAX)])
def test_a_damaged_report_is_a_defect_of_the_harness(tmp_path, change):
    run = make_run(tmp_path)
    folder = run.write()
    report = run.folder.host("b").loss_report
    report.write_bytes(change(report.read_bytes()))
    assert loss_report_agrees(Evidence(folder), run.traffic).outcome is Outcome.HARNESS


def test_several_sessions_are_not_judged(tmp_path):
    run = make_run(tmp_path)
    traffic = run.traffic.model_copy(update={"rejoins": True})
    finding = loss_report_agrees(Evidence(run.write()), traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "several images" in finding.text
