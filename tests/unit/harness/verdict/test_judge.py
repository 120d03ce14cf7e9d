"""The whole judge: correct runs pass, incomplete folders never do, and excuses are attributed."""

import errno
import gc
import json
import os
import shutil

import pytest

from tests.unit.harness.verdict.synthetic_run import START_NS, make_run, nak
from windtunnel.driver.kernels.cache import KernelCacheError
from windtunnel.harness.artifact.run.manifest import ProcessExit, SubjectFacts
from windtunnel.harness.scenario.resolved.case import CheckCase
from windtunnel.harness.verdict import judge as judge_module
from windtunnel.harness.verdict.core import evidence as evidence_module
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.registry import CHECKS, GATES, Check

NOT_EVIDENCE = {"scenario.yaml", "verdict.json"}


@pytest.mark.parametrize("reliable", [True, False])
def test_a_valid_run_passes_with_a_reason(tmp_path, reliable):
    verdict = judge(make_run(tmp_path, reliable).write())
    assert verdict.outcome is Outcome.PASS, verdict.reason
    assert {finding.name for finding in verdict.gates} == set(GATES)
    asked = {check.name for check in make_run(tmp_path, reliable).case.expect}
    assert {finding.name for finding in verdict.checks} == {"subject_lived", *asked}


def test_a_valid_run_without_faults_passes(tmp_path):
    assert judge(make_run(tmp_path, drops=False).write()).outcome is Outcome.PASS


def test_an_empty_folder_is_inconclusive_and_every_line_has_a_reason(tmp_path):
    verdict = judge(tmp_path)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.exit_code == 2
    assert "run.json: is missing" in verdict.reason
    assert all(each.outcome is Outcome.INCONCLUSIVE for each in (*verdict.gates, *verdict.checks))


def test_a_missing_folder_is_inconclusive_and_is_not_created(tmp_path):
    assert judge(tmp_path / "nowhere").outcome is Outcome.INCONCLUSIVE
    assert not (tmp_path / "nowhere").exists()


def folder_files(path):
    files = (file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file())
    return [file for file in files if str(file) not in NOT_EVIDENCE]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("reliable", [True, False])
def test_without_one_of_its_files_a_run_never_passes_and_the_file_is_reported(tmp_path, reliable):
    make_run(tmp_path / "whole", reliable).write()
    for file in folder_files(tmp_path / "whole"):
        part = tmp_path / "part"
        shutil.copytree(tmp_path / "whole", part)
        (part / file).unlink()
        verdict = judge(part)
        shutil.rmtree(part)
        assert verdict.outcome in (Outcome.INCONCLUSIVE, Outcome.HARNESS), file
        assert file.as_posix() in verdict.reason, file


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("reliable", [True, False])
def test_with_an_empty_file_a_run_never_passes(tmp_path, reliable):
    make_run(tmp_path / "whole", reliable).write()
    for file in folder_files(tmp_path / "whole"):
        part = tmp_path / "part"
        shutil.copytree(tmp_path / "whole", part)
        (part / file).write_bytes(b"")
        verdict = judge(part)
        shutil.rmtree(part)
        assert verdict.outcome is not Outcome.PASS, file


@pytest.mark.timeout(60)
def test_with_a_file_extended_by_a_large_hole_a_run_is_judged_soon(tmp_path):
    """A terabyte of zeros takes a few bytes in an archive of a run folder."""
    folder = make_run(tmp_path / "run").write()
    for file in folder_files(folder):
        if file.suffix == ".logbuffer":
            # What follows the length in its metadata is not read.
            continue
        length = (folder / file).stat().st_size
        os.truncate(folder / file, 1 << 40)
        assert judge(folder).outcome is not Outcome.PASS, file
        os.truncate(folder / file, length)


def test_a_damaged_document_is_a_harness_defect(tmp_path):
    make_run(tmp_path).write()
    (tmp_path / "ledger.json").write_text('{"schema": "windtunnel-ledger/1"}')
    verdict = judge(tmp_path)
    assert verdict.outcome is Outcome.HARNESS
    assert "ledger.json" in verdict.reason


def test_judging_again_elsewhere_gives_the_same_bytes(tmp_path):
    make_run(tmp_path / "here").write()
    judge(tmp_path / "here")
    first = (tmp_path / "here/verdict.json").read_bytes()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    (tmp_path / "there/verdict.json").unlink()
    judge(tmp_path / "there")
    assert (tmp_path / "there/verdict.json").read_bytes() == first
    document = json.loads(first)
    assert (document["outcome"], document["exit_code"], document["seed"]) == ("PASS", 0, 7)


def test_judging_many_runs_keeps_none_of_their_files_open(tmp_path):
    folder = make_run(tmp_path).write()
    judge(folder)
    open_files = len(os.listdir("/proc/self/fd"))
    gc.disable()
    try:
        judge(folder)
        judge(folder)
        assert len(os.listdir("/proc/self/fd")) == open_files
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied", "CACHE"),
        KernelCacheError("kernel cache CACHE: expected a directory that belongs to user 0"),
        OSError(errno.EMFILE, "Too many open files"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("place", ["check", "file"])
def test_an_error_of_this_process_leaves_the_verdict_as_it_is(tmp_path, monkeypatch, error, place):
    folder = make_run(tmp_path).write()
    judge(folder)
    before = (folder / "verdict.json").read_bytes()
    root = tmp_path / "cache"
    monkeypatch.setenv("WINDTUNNEL_KERNEL_CACHE", str(root))
    if isinstance(error, PermissionError):
        error.filename = str(root)

    def fail(*_):
        raise error

    if place == "file":
        monkeypatch.setattr(evidence_module, "read_decisions", fail)
    else:
        failing = Check("rcv_hwm_from_wire", Kind.PROTOCOL, fail)
        monkeypatch.setitem(CHECKS, failing.name, failing)
    with pytest.raises(type(error)):
        judge(folder)
    assert (folder / "verdict.json").read_bytes() == before


@pytest.mark.parametrize("name", ["run.json", "payload.bin", "captures/a.pcap"])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, monkeypatch, name):
    folder = make_run(tmp_path).write()
    real = os.open

    def refuse(path, *rest, **named):
        if str(path).endswith(name):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)
    verdict = judge(folder)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert f"{name}: cannot be read: Permission denied" in verdict.reason


def test_captures_in_a_folder_that_must_not_be_searched_are_named(tmp_path, monkeypatch):
    folder = make_run(tmp_path).write()
    real_open, real_stat = os.open, os.stat

    def refuse(path, real, rest, named):
        if "/captures/" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest, **named)

    monkeypatch.setattr(
        os, "open", lambda path, *rest, **named: refuse(path, real_open, rest, named)
    )
    monkeypatch.setattr(
        os, "stat", lambda path, *rest, **named: refuse(path, real_stat, rest, named)
    )
    verdict = judge(folder)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "captures/a.pcap: cannot be read: Permission denied" in verdict.reason


def test_a_check_that_raises_is_a_harness_defect_and_the_others_still_count(tmp_path, monkeypatch):
    def throw(*_):
        raise ZeroDivisionError("by hand")

    broken = Check("rcv_hwm_from_wire", Kind.PROTOCOL, throw)
    monkeypatch.setitem(CHECKS, broken.name, broken)
    run = make_run(tmp_path)
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.HARNESS
    assert (
        "rcv_hwm_from_wire: the judge raised ZeroDivisionError at test_judge.py" in verdict.reason
    )
    run.messages[3] = (run.messages[3][0], bytes(len(run.messages[3][1])))
    assert judge(run.write()).outcome is Outcome.FAIL


def test_a_gate_that_raises_is_a_harness_defect(tmp_path, monkeypatch):
    monkeypatch.setitem(judge_module.GATES, "captures_complete", lambda evidence: 1 / 0)
    assert judge(make_run(tmp_path).write()).outcome is Outcome.HARNESS


def test_a_check_that_is_unknown_is_a_harness_defect(tmp_path):
    run = make_run(tmp_path)
    wanted = CheckCase(name="all_is_well", arguments={})
    run.case = run.case.model_copy(update={"expect": (wanted,)})
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.HARNESS
    assert "all_is_well: unknown check" in verdict.reason


@pytest.mark.parametrize("arguments", [{"traffic": "two"}, {"stream": 1001}])
def test_a_check_that_checks_nothing_is_a_harness_defect(tmp_path, arguments):
    run = make_run(tmp_path)
    wanted = CheckCase(name="delivered_once", arguments=arguments)
    run.case = run.case.model_copy(update={"expect": (wanted,)})
    assert judge(run.write()).outcome is Outcome.HARNESS


def test_a_check_can_apply_to_one_traffic(tmp_path):
    run = make_run(tmp_path)
    wanted = CheckCase(name="delivered_once", arguments={"traffic": "one"})
    run.case = run.case.model_copy(update={"expect": (wanted,)})
    assert judge(run.write()).outcome is Outcome.PASS


def test_expecting_nothing_is_inconclusive(tmp_path):
    run = make_run(tmp_path)
    run.case = run.case.model_copy(update={"expect": ()})
    assert judge(run.write()).outcome is Outcome.INCONCLUSIVE


def test_a_broken_gate_excuses_a_counter_but_not_a_delivered_byte(tmp_path):
    run = make_run(tmp_path)
    run.links["a->b"].kernel_drops = 3
    run.values["b/14"] = 1
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.HARNESS
    excused = [each for each in verdict.checks if each.name == "invalid_packets_zero"]
    assert excused[1].outcome is Outcome.INCONCLUSIVE
    assert "gate ledger_balanced failed" in excused[1].text
    position, data = run.messages[5]
    run.messages[5] = (position, bytes([data[0] ^ 1]) + data[1:])
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.FAIL
    assert "message 5" in verdict.reason


def test_too_few_frames_for_a_rule_excuse_nothing(tmp_path):
    run = make_run(tmp_path)
    fault = run.case.faults[0].model_copy(update={"id": "rare", "frame_types": ("NAK",)})
    run.case = run.case.model_copy(update={"faults": (*run.case.faults, fault)})
    assert judge(run.write()).outcome is Outcome.INCONCLUSIVE
    run.values["b/14"] = 1
    assert judge(run.write()).outcome is Outcome.FAIL


def test_a_driver_that_died_is_a_failure_with_its_last_log_line(tmp_path):
    run = make_run(tmp_path)
    run.manifest.processes[1] = ProcessExit(
        "b/driver", "driver", -11, False, "hosts/b/driver.log", "about to write to null"
    )
    run.manifest.errors = ["b/driver ended"]
    run.manifest.complete = False
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.FAIL
    assert verdict.reason == (
        "subject_lived (b/driver): b/driver was terminated by signal 11 (SIGSEGV) before the "
        "shutdown request; its log hosts/b/driver.log ends with: about to write to null"
    )


@pytest.mark.parametrize("role", ["publisher", "subscriber"])
def test_a_workload_that_failed_fails(tmp_path, role):
    run = make_run(tmp_path)
    failed = next(each for each in run.manifest.processes if each.role == role)
    failed.exit_code, failed.last_log_line = 1, "offer returned -5"
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.FAIL
    assert failed.name in verdict.reason
    assert "offer returned -5" in verdict.reason


@pytest.mark.parametrize("name", ["a/publisher-one", "b/subscriber-one"])
def test_a_workload_with_an_error_fails_with_the_time_of_its_end(tmp_path, name):
    run = make_run(tmp_path)
    took = f"{(run.now_ns - START_NS) / 1e6:.0f} ms after the traffic began"
    path = run.write()
    file = path / f"hosts/{name}.json"
    file.write_text(file.read_text().replace('"error": null', '"error": "offer returned -5"'))
    verdict = judge(path)
    assert verdict.outcome is Outcome.FAIL
    assert f"{name} failed, {took}, and reports: offer returned -5" in verdict.reason


def test_a_driver_that_ends_well_but_without_a_request_fails(tmp_path):
    run = make_run(tmp_path)
    run.manifest.processes[0].exit_code = 0
    run.manifest.processes[0].asked = False
    assert judge(run.write()).outcome is Outcome.FAIL


@pytest.mark.parametrize("role", ["driver", "publisher", "subscriber"])
def test_a_manifest_without_a_kind_of_process_is_inconclusive(tmp_path, role):
    run = make_run(tmp_path)
    run.manifest.processes = [each for each in run.manifest.processes if each.role != role]
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert f"lists no {role}" in verdict.reason


def test_an_unsupported_workload_makes_the_run_unsupported(tmp_path):
    run = make_run(tmp_path)
    run.manifest.processes[2].exit_code = 127
    run.manifest.complete = False
    verdict = judge(run.write())
    assert (verdict.outcome, verdict.exit_code) == (Outcome.UNSUPPORTED, 0)


@pytest.mark.parametrize("code", [126, 127])
def test_a_driver_that_could_not_be_executed_is_not_a_failure_if_the_harness_reports_it(
    tmp_path, code
):
    run = make_run(tmp_path)
    run.manifest.processes[0].exit_code = code
    run.manifest.processes[0].asked = False
    run.write()
    assert judge(tmp_path).outcome is Outcome.FAIL
    run.manifest.unsupported = "no such library"
    run.write()
    assert judge(tmp_path).outcome is Outcome.UNSUPPORTED
    run.manifest.processes[0].exit_code = -11
    run.write()
    assert judge(tmp_path).outcome is Outcome.FAIL


def test_a_run_that_this_machine_cannot_make_is_unsupported(tmp_path):
    run = make_run(tmp_path)
    run.manifest.unsupported = "no network namespaces here"
    run.manifest.write(run.folder.manifest)
    verdict = judge(tmp_path)
    assert (verdict.outcome, verdict.reason) == (Outcome.UNSUPPORTED, "no network namespaces here")


def test_traffic_that_overran_its_budget_is_a_failure_of_the_subject(tmp_path):
    run = make_run(tmp_path)
    run.manifest.complete = False
    run.manifest.overran = "the budget of 120 s is over"
    run.messages = run.messages[:50]
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.FAIL
    assert "the budget of 120 s is over" in verdict.reason


def pace_of(tmp_path, applies, name: str, version: str):
    """Return the verdict on a run with an extra NAK, whose check applies to some subjects only."""
    run = make_run(tmp_path)
    run.manifest.subjects = {"b": SubjectFacts("subscriber", name, version)}
    wanted = CheckCase(name="naks_only_for_gaps", arguments={"applies": applies})
    run.case = run.case.model_copy(update={"expect": (wanted,)})
    packet = [each for each in run.packets["b"] if each.kind == "NAK"][2]
    packet.payload = nak(run.decisions[2][12], 1 << 14)
    return judge(run.write())


@pytest.mark.parametrize("applies", [["ours"], ["aeron-c>=1.50", "ours>=1.53"]])
def test_a_check_that_applies_to_the_subject_fails_it(tmp_path, applies):
    verdict = pace_of(tmp_path, applies, "ours", "1.53.0")
    assert verdict.outcome is Outcome.FAIL


def test_outside_of_its_subjects_a_violation_is_a_difference_and_no_failure(tmp_path):
    verdict = pace_of(tmp_path, ["ours"], "aeron-c", "1.53.0-SNAPSHOT")
    assert verdict.outcome is Outcome.PASS
    assert "known differences: 1" in verdict.reason
    document = verdict.as_document()["checks"][-1]
    assert document["difference"] is True
    assert (
        "known difference (this check does not apply to aeron-c 1.53.0-SNAPSHOT):"
        in document["text"]
    )
    assert "ends beyond the highest arrived position" in document["text"]


def test_a_version_that_is_unknown_leaves_a_violation_open(tmp_path):
    verdict = pace_of(tmp_path, ["aeron-c>=1.50"], "aeron-c", "")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "cannot determine whether this check applies to version" in verdict.reason


def test_the_process_that_ended_first_is_named(tmp_path):
    # The subscriber's driver refused its channel, so the publisher never had a subscriber.
    run = make_run(tmp_path)
    publisher, reader = run.manifest.processes[2:4]
    publisher.exit_code, publisher.last_log_line = 1, "no reader"
    reader.exit_code, reader.last_log_line = 1, "rcv-wnd=64m: expected at most 131072 bytes"
    run.manifest.complete, run.manifest.stopped = False, "b/subscriber-one ended with exit code 1"
    verdict = judge(run.write())
    assert verdict.outcome is Outcome.FAIL
    took = f"{(run.now_ns - START_NS) / 1e6:.0f} ms after the traffic began"
    assert verdict.reason == (
        f"subject_lived (b/subscriber-one): b/subscriber-one exited with code 1, {took}, before "
        "the shutdown request; its log hosts/b/subscriber-one.log ends with: rcv-wnd=64m: expected "
        "at most 131072 bytes"
    )
    assert "rcv-wnd=64m" in verdict.reason


def test_a_verdict_names_who_is_at_fault(tmp_path):
    run = make_run(tmp_path / "passed")
    passed = judge(run.write())
    assert passed.at_fault is None
    assert "at_fault" not in passed.as_document()

    run = make_run(tmp_path / "driver")
    run.messages[5] = (run.messages[5][0], bytes(len(run.messages[5][1])))
    wrong = judge(run.write())
    assert wrong.as_document()["at_fault"] == "driver"
    assert "at fault" not in wrong.reason

    run = make_run(tmp_path / "scenario")
    fault = run.case.faults[0].model_copy(update={"id": "rare", "frame_types": ("NAK",)})
    run.case = run.case.model_copy(update={"faults": (*run.case.faults, fault)})
    unused = judge(run.write())
    assert unused.outcome is Outcome.INCONCLUSIVE
    assert unused.as_document()["at_fault"] == "scenario"
    assert unused.reason.endswith("(at fault: the scenario)")

    run = make_run(tmp_path / "machine", reliable=False)
    run.rcvbuf_errors["b"] = 3
    overflowed = judge(run.write())
    assert overflowed.outcome is Outcome.INCONCLUSIVE
    assert overflowed.as_document()["at_fault"] == "machine"
    assert overflowed.reason.endswith("(at fault: the machine)")

    run = make_run(tmp_path / "harness")
    run.manifest.errors = ["the relay ended"]
    assert judge(run.write()).as_document()["at_fault"] == "windtunnel"
