"""A suite executes all its runs whatever happens in them, and leaves no process and no lab."""

import datetime
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.stand_ins import local_lab
from tests.stand_ins.local_lab import LocalLab, scripted
from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import containers, labs
from windtunnel.harness.orchestrate.run import one_run, phases, run_processes, traffic
from windtunnel.harness.orchestrate.run.payload import Payload
from windtunnel.harness.orchestrate.subjects.subject import Pair
from windtunnel.harness.orchestrate.suite import runner, suite
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.scenario.loader import ScenarioError

SCENARIO = """
schema: windtunnel/1
name: small
about: A run that takes no time.
seeds: {root: 7}
fidelity: [netns]
network:
  hosts: [a, b]
  link: {between: [a, b]}
traffic:
  - id: one
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 100B}
expect: [delivered_once]
budget: {wall: 60s}
"""


def until(test: str) -> str:
    """Return a shell loop that waits until a test holds; scripts run in the bench's folder."""
    return f"until [ {test} ]; do sleep 0.02; done"


class Bench:
    """Runs suites with shell scripts as programs, and records events and results."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self.scenario = folder / "small.yaml"
        self.scenario.write_text(SCENARIO)
        self.labs: list[LocalLab] = []
        self.events = []
        self.judged = []
        self.broken = ""
        stored = folder / "payload"
        stored.write_bytes(b"payload")
        monkeypatch.setattr(labs, "require", lambda *_: None)
        monkeypatch.setattr(labs, "make", self._make_lab)
        monkeypatch.setattr(one_run, "_judge", self._judge)
        monkeypatch.setattr(
            runner, "payload_of", lambda store, file: Payload(stored, "0" * 64, 7, "")
        )
        monkeypatch.setattr(sniffer, "SETTLE_S", 0.0)
        monkeypatch.setattr(phases, "QUIET_S", 0.0)
        monkeypatch.setattr(traffic, "GRACE_S", 0.2)

    def _make_lab(self, fidelity, topology, *, records, runs) -> LocalLab:
        self.labs.append(LocalLab(self.folder, broken=self.broken))
        return self.labs[-1]

    def _judge(self, folder: RunDir) -> tuple[str, str]:
        self.judged.append(folder)
        return "PASS", "all is well"

    def run(self, on_event=None, **options) -> runner.SuiteResult:
        changed = options.pop("programs", {})
        tested, programs = scripted(**changed)
        tested = replace(tested, missing=options.pop("missing", ""))
        tested = replace(tested, mutant=options.pop("mutant", ""))
        other = replace(tested, name=options.pop("subscriber", tested.name), mutant="")
        local_lab.install(self._monkeypatch, programs)

        def on_every_event(event) -> None:
            self.events.append(event)
            if on_event is not None:
                on_event(event)

        return runner.run_suite(
            [self.scenario],
            out=self.folder / "runs",
            tested=Pair(tested, other),
            on_event=on_every_event,
            **options,
        )

    def manifest(self, result) -> Manifest:
        return Manifest.read(RunDir(result.runs[0].run_dir).manifest)

    def nothing_is_left(self) -> bool:
        return all(lab.downs >= 1 and not lab.living() for lab in self.labs)


@pytest.fixture
def bench(tmp_path, monkeypatch):
    created = Bench(tmp_path, monkeypatch)
    yield created
    assert created.nothing_is_left()


THREE_HOSTS = SCENARIO.replace("hosts: [a, b]", "hosts: [a, b, c]").replace(
    "link: {between: [a, b]}", "links: [{between: [a, b]}, {between: [a, c]}]"
)


def test_inside_compose_a_scenario_with_other_hosts_is_refused_before_anything_starts(
    bench, monkeypatch
):
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "1")
    bench.scenario.write_text(THREE_HOSTS.replace("[netns]", "[netns, compose]"))
    with pytest.raises(LabError, match=r"scenario small: .*but the scenario also has c"):
        bench.run(fidelity="compose")
    assert not (bench.folder / "runs").exists()
    assert bench.labs == bench.events == []


def test_a_scenario_not_made_for_compose_is_not_refused_for_its_hosts(bench, monkeypatch):
    monkeypatch.setenv(containers.INSIDE_VARIABLE, "1")
    bench.scenario.write_text(THREE_HOSTS)
    manifest = bench.manifest(bench.run(fidelity="compose"))
    assert "fidelity compose" in manifest.unsupported


def test_a_run_executes_all_phases_and_leaves_a_complete_folder(bench):
    result = bench.run()
    assert result.exit_code == 0
    manifest = bench.manifest(result)
    assert manifest.complete
    assert manifest.errors == []
    assert [phase.name for phase in manifest.phases] == [
        *("prepare", "lab", "start", "subscribe", "traffic", "settle"),
        *("stop", "collect", "down"),
    ]
    assert all(phase.started_ns <= phase.ended_ns for phase in manifest.phases)
    folder = RunDir(result.runs[0].run_dir)
    assert folder.scenario.read_text() == SCENARIO
    assert folder.payload.read_bytes() == b"payload"
    assert f"--seed {result.runs[0].seed}" in folder.repro.read_text()
    case = json.loads(folder.case.read_text())
    assert case["traffic"][0]["channel"].startswith("aeron:udp?endpoint=10.64.0.19:24325|")


def test_the_manifest_reports_how_each_process_ended(bench):
    # A script that is asked to end before its shell has set its trap has another exit code.
    drivers = until("$(cat runs/*/*/hosts/*/driver.log | wc -l) = 2")
    publisher = f"{drivers}; echo progress 100/100"
    manifest = bench.manifest(bench.run(programs={"publisher": publisher}))
    assert {(each.name, each.role, each.exit_code, each.asked) for each in manifest.processes} == {
        ("a/capture", "capture", 0, True),
        ("b/capture", "capture", 0, True),
        ("mid/relay", "relay", 0, True),
        ("a/driver", "driver", 0, True),
        ("b/driver", "driver", 0, True),
        ("a/sampler", "sampler", 0, True),
        ("b/sampler", "sampler", 0, True),
        ("b/subscriber-one", "subscriber", 0, False),
        ("a/publisher-one", "publisher", 0, False),
    }


def test_events_report_run_phases_progress_and_verdict(bench):
    def remember(event):
        if event.kind == "progress" and event.published_bytes == event.delivered_bytes == 100:
            (bench.folder / "reported").touch()

    stays = f"echo progress 100/100; {until('-e reported')}"
    subscriber = f"echo ready; {until('-e begun')}; {stays}"
    bench.run(
        on_event=remember, programs={"publisher": f"touch begun; {stays}", "subscriber": subscriber}
    )
    kinds = [event.kind for event in bench.events]
    assert kinds[0] == "run"
    assert kinds[-1] == "verdict"
    last = [event for event in bench.events if event.kind == "progress"][-1]
    assert (last.published_bytes, last.delivered_bytes, last.fraction) == (100, 100, 1.0)
    assert bench.events[-1].outcome == "PASS"
    assert bench.events[-1].text == "all is well"


def test_several_seeds_are_several_runs_in_one_suite(bench):
    result = bench.run(seed=40, seeds=3)
    assert [run.seed for run in result.runs] == [40, 41, 42]
    assert len({run.run_dir for run in result.runs}) == 3
    document = Suite.read(result.suite_dir / "suite.json")
    assert [run.seed for run in document.runs] == [40, 41, 42]
    assert document.exit_code == 0
    assert {event.run_count for event in bench.events} == {3}


@pytest.mark.parametrize("role", ["driver", "relay", "sampler"])
def test_a_process_that_ends_before_it_is_ready_ends_the_run_with_its_last_lines(bench, role):
    result = bench.run(programs={"publisher": "sleep 600", role: "echo I cannot; exit 9"})
    manifest = bench.manifest(result)
    reason = "".join(manifest.errors) + manifest.stopped
    assert f"{role} ended with exit code 9; last log lines: I cannot" in reason
    assert not manifest.complete
    assert bool(manifest.errors) == (role != "driver")
    assert len(bench.judged) == 1


def test_a_driver_that_ends_during_the_run_ends_the_run_at_once(bench):
    driver = "sleep 0.7; echo out of memory; exit 1"
    started_s = time.monotonic()
    result = bench.run(programs={"driver": driver, "publisher": "sleep 600"})
    assert time.monotonic() - started_s < 100
    assert (
        "driver ended with exit code 1; last log lines: out of mem"
        in bench.manifest(result).stopped
    )


def test_a_driver_that_is_killed_is_reported_by_its_signal(bench):
    programs = {"driver": "sleep 0.5; kill -SEGV $$", "publisher": "sleep 60"}
    result = bench.run(programs=programs)
    manifest = bench.manifest(result)
    assert f"was ended by signal {int(signal.SIGSEGV)}" in manifest.stopped
    codes = {each.name: each.exit_code for each in manifest.processes}
    assert -signal.SIGSEGV in (codes["a/driver"], codes["b/driver"])


def test_a_workload_that_fails_is_named(bench):
    result = bench.run(
        programs={"publisher": "echo wrong channel; exit 1", "subscriber": "echo ready; sleep 60"}
    )
    stopped = bench.manifest(result).stopped
    assert stopped == "a/publisher-one ended with exit code 1; last log lines: wrong channel"


def test_a_workload_that_cannot_do_this_makes_the_run_unsupported(bench):
    result = bench.run(programs={"publisher": "echo no such thing here; exit 127"})
    assert bench.manifest(result).unsupported == "no such thing here"


def test_a_budget_that_is_over_ends_the_run_with_numbers(bench):
    bench.scenario.write_text(SCENARIO.replace("60s", "300ms"))
    # The budget begins with the publisher's first progress, when the subscriber has ended.
    publisher = (
        "touch begun; while kill -0 $(cat reader) 2> /dev/null; do sleep 0.02; done; "
        "echo progress 60/100; sleep 600"
    )
    subscriber = f"echo $$ > reader; echo ready; {until('-e begun')}; echo progress 100/100"
    result = bench.run(programs={"publisher": publisher, "subscriber": subscriber})
    stopped = bench.manifest(result).overran
    assert "the budget of 0.3 s is exceeded; still running: a/publisher-one" in stopped
    assert "published 60 and delivered 100 of 100 bytes" in stopped


def test_a_driver_that_never_gets_ready_is_named_not_its_sampler(bench, monkeypatch):
    def shorten_timeout(event):
        if event.phase == "waiting for drivers":
            monkeypatch.setattr(phases, "READY_TIMEOUT_S", 0.5)

    result = bench.run(
        on_event=shorten_timeout, programs={"sampler": local_lab.printing_program("nothing")}
    )
    assert bench.manifest(result).stopped.startswith("a/driver is not ready after 0.5 s")


def test_a_process_that_does_not_end_when_asked_is_killed_and_mentioned(bench, monkeypatch):
    monkeypatch.setattr(run_processes, "STOP_TIMEOUT_S", 0.3)
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.02; done"
    result = bench.run(programs={"relay": stubborn})
    # Other processes may have been late too, if this machine stood still.
    text = "mid/relay did not end within 0.3 s of the request to end"
    assert text in bench.manifest(result).errors


def test_a_relay_that_ends_with_an_error_is_an_error_of_the_harness(bench):
    relay = "trap 'echo no room for 3 frames; exit 3' TERM; echo ready; "
    result = bench.run(programs={"relay": relay + "while :; do sleep 0.02; done"})
    (error,) = bench.manifest(result).errors
    assert error.startswith("mid/relay ended with exit code 3; last log lines:")
    assert error.endswith("no room for 3 frames")


def test_a_lab_that_cannot_be_built_is_an_error_in_the_run_folder(bench):
    bench.broken = "up"
    result = bench.run()
    assert bench.manifest(result).errors == ["no lab today"]
    assert len(bench.judged) == 1


def test_a_lab_with_left_overs_is_an_error(bench):
    bench.broken = "down"
    assert bench.manifest(bench.run()).errors == ["something is left over"]


def test_an_exception_of_the_harness_ends_the_run_but_not_the_suite(bench, monkeypatch):
    def fail(**_):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(traffic, "wait_for_workloads", fail)
    result = bench.run(seeds=2)
    assert len(result.runs) == 2
    (error,) = bench.manifest(result).errors
    assert error.startswith("internal error of the harness")
    assert "ZeroDivisionError: a defect" in error


def test_a_full_disk_is_reported_with_numbers_before_anything_starts(bench, monkeypatch):
    monkeypatch.setattr(phases.space, "DISK_RESERVE_BYTES", 1 << 60)
    result = bench.run()
    (error,) = bench.manifest(result).errors
    assert error.startswith("the run folder may need 1099511627776 MiB in ")
    assert bench.manifest(result).processes == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_tears_everything_down_and_keeps_the_folder(bench, number, code):
    def interrupt(event):
        # The first progress is reported when all processes have been started.
        if event.kind == "progress":
            os.kill(os.getpid(), number)

    result = bench.run(on_event=interrupt, seeds=3, programs={"publisher": "sleep 600"})
    assert result.exit_code == code
    assert [run.outcome for run in result.runs] == ["CANCELLED"]
    assert bench.judged == []
    manifest = bench.manifest(result)
    assert not manifest.complete
    assert signal.Signals(number).name in manifest.stopped
    assert {each.role for each in manifest.processes} >= {"driver", "relay", "publisher"}
    assert Suite.read(result.suite_dir / "suite.json").exit_code == code


def test_a_scenario_for_other_fidelities_is_unsupported_and_starts_nothing(bench):
    bench.scenario.write_text(SCENARIO.replace("fidelity: [netns]", "fidelity: [compose]"))
    manifest = bench.manifest(bench.run())
    text = "does not support fidelity netns, but compose: choose one of these, or add netns to"
    assert text in manifest.unsupported
    assert manifest.processes == []


def test_a_wrong_scenario_is_refused_before_anything_starts(bench):
    bench.scenario.write_text(SCENARIO.replace("budget", "budgit"))
    with pytest.raises(ScenarioError, match=r"small.yaml:\d+"):
        bench.run()
    assert not (bench.folder / "runs").exists()


def test_a_machine_that_cannot_make_any_run_is_reported_before_anything_starts(bench, monkeypatch):
    def refuse(*_):
        raise LabError("not here")

    monkeypatch.setattr(labs, "require", refuse)
    with pytest.raises(LabError, match="not here"):
        bench.run()
    assert not (bench.folder / "runs").exists()


def test_an_unknown_sabotage_is_refused(bench):
    with pytest.raises(ValueError, match="expected one of skip-message, flip-byte"):
        bench.run(sabotage="no-such-sabotage")


def test_a_folder_that_cannot_be_written_is_one_line(bench):
    (bench.folder / "runs").write_text("a file")
    with pytest.raises(LabError, match=r"/runs/.*(Not a directory|File exists)"):
        bench.run()


def test_the_sabotage_is_in_the_manifest_and_in_the_command(bench):
    manifest = bench.manifest(bench.run(sabotage="flip-byte"))
    assert manifest.sabotage == "flip-byte"
    assert manifest.command[-2:] == ["--sabotage", "flip-byte"]
    assert manifest.mutant == ""


def test_channel_parameters_are_in_the_case_the_manifest_and_the_command(bench):
    wanted = {"nak-delay": "10us", "endpoint": "${b}:24325"}
    result = bench.run(receive=wanted)
    manifest = bench.manifest(result)
    assert manifest.receive == wanted
    assert manifest.command[-4:] == [
        *("--receive", "nak-delay=10us"),
        *("--receive", "endpoint=${b}:24325"),
    ]
    folder = RunDir(result.runs[0].run_dir)
    case = json.loads(folder.case.read_text())
    assert case["traffic"][0]["receive"] == "aeron:udp?nak-delay=10us|endpoint=10.64.0.19:24325"
    assert folder.scenario.read_text() == SCENARIO


def test_channel_parameters_are_set_for_each_subscriber(bench):
    bench.scenario.write_text(
        THREE_HOSTS.replace("    to: b\n", "    to: [b, c]\n")
        .replace("endpoint=${b}:24325|", "control-mode=dynamic|control=${a}:24324|")
        .replace(
            'receive: "aeron:udp?endpoint=${b}:24325"',
            'receive: "aeron:udp?endpoint=${self}:24325|control=${a}:24324|control-mode=dynamic"\n'
            "    receives:\n"
            '      c: "aeron:udp?endpoint=${c}:24325|control=${a}:24324|control-mode=dynamic"',
        )
    )
    (planned,) = runner.plan([bench.scenario], None, None, receive={"reliable": "false"})
    (traffic,) = planned.scenario.traffic
    assert traffic.receive.endswith("|control-mode=dynamic|reliable=false")
    assert traffic.receives["c"].endswith("|control-mode=dynamic|reliable=false")
    assert "reliable" not in traffic.channel


def test_a_wrong_channel_parameter_is_reported_before_anything_starts(bench):
    with pytest.raises(ScenarioError, match=r"small.yaml:17:5: .*nak-dlay"):
        bench.run(receive={"nak-dlay": "10us"})
    assert bench.events == []


def test_settings_that_the_judge_needs_are_in_the_manifest(bench, monkeypatch):
    settings = {"WINDTUNNEL_NAK_ALL_GAPS": "true", "WINDTUNNEL_RETRANSMIT_RANGES": "true"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    subjects = bench.manifest(bench.run()).subjects
    assert [each.settings for each in subjects.values()] == [settings, settings]


def test_the_mutant_is_in_the_manifest_and_in_the_command(bench):
    manifest = bench.manifest(bench.run(mutant="missing-heartbeats"))
    assert manifest.mutant == "missing-heartbeats"
    assert manifest.command[-2:] == ["--mutant", "missing-heartbeats"]
    assert manifest.sabotage == ""


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["PASS", "PASS"], 0),
        (["PASS", "INCONCLUSIVE"], 2),
        (["INCONCLUSIVE", "HARNESS"], 3),
        (["HARNESS", "FAIL", "PASS"], 1),
        (["PASS", "UNSUPPORTED"], 0),
    ],
)
def test_the_worst_outcome_gives_the_exit_code(outcomes, code):
    assert suite.worst_exit_code(outcomes) == code


def test_each_side_has_its_own_subject_and_all_documents_name_both(bench):
    result = bench.run(subscriber="other")
    folder = RunDir(result.runs[0].run_dir)
    manifest = bench.manifest(result)
    assert {host: (each.side, each.peer) for host, each in manifest.subjects.items()} == {
        "a": ("publisher", "scripted"),
        "b": ("subscriber", "other"),
    }
    command, remark = folder.repro.read_text().splitlines()
    assert command.endswith("--publisher scripted --subscriber other")
    assert remark == "# a: scripted, b: other"


def test_a_peer_that_this_machine_lacks_makes_the_run_unsupported_and_starts_nothing(bench):
    result = bench.run(missing="no such thing here")
    manifest = bench.manifest(result)
    assert manifest.unsupported == "scripted: no such thing here"
    assert manifest.processes == []


@pytest.mark.parametrize("code", [126, 127])
def test_a_driver_that_cannot_be_executed_makes_the_run_unsupported(bench, code):
    result = bench.run(
        programs={"driver": f"echo no such library; exit {code}", "sampler": "sleep 60"}
    )
    unsupported = bench.manifest(result).unsupported
    assert unsupported.endswith(f"ended with exit code {code}; last log lines: no such library")


def test_the_end_of_a_suite_reports_of_each_scenario_and_of_what_is_known(bench):
    entry = KnownFailure(
        scenario="small",
        check="naks_paced",
        subject="ours",
        owner="Jane",
        issue="https://example.org/1",
        expires=datetime.date(2000, 1, 1),
    )
    result = bench.run(seeds=3, known=[entry])
    document = Suite.read(result.suite_dir / "suite.json")
    assert document.scenarios == result.scenarios
    (scenario,) = result.scenarios
    assert (scenario.runs, scenario.failures, scenario.limit) == (3, 0, None)
    assert scenario.text == "0 of 3 runs failed"
    assert document.remarks == result.remarks
    assert "has expired" in result.remarks[-1]
    assert result.exit_code == 0


def test_a_scenario_with_a_limit_needs_enough_runs(bench):
    bench.scenario.write_text(SCENARIO.replace("wall: 60s", "wall: 60s, failures: 5%"))
    result = bench.run(seeds=2)
    assert result.scenarios[0].limit == 0.05
    assert (result.scenarios[0].outcome, result.exit_code) == ("INCONCLUSIVE", 2)


CAPTURE = """
trap 'exit 0' TERM
trap 'asked=$((asked + 1))
      echo "tcpdump: $asked packets captured, 3 packets received by filter"' USR1
echo listening on eth0
while :; do sleep 0.01; done
"""


def test_captures_are_ended_as_soon_as_they_are_complete(bench, monkeypatch):
    monkeypatch.setattr(sniffer, "SETTLE_S", 3600.0)
    result = bench.run(programs={"capture": CAPTURE})
    folder = RunDir(result.runs[0].run_dir)
    for host in ("a", "b"):
        assert "tcpdump: 3 packets captured" in folder.capture_log(host).read_text()


SURPRISED = """
trap 'echo 0 packets captured; echo 1 packet received by filter; echo 0 packets dropped by kernel
      exit 0' TERM
trap 'echo "tcpdump: 0 packets captured, 1 packet received by filter"' USR1
echo listening on eth0
while :; do sleep 0.01; done
"""


def test_a_capture_reports_packets_before_its_filter_before_anything_is_sent(bench):
    both = "$(grep -l 'tcpdump: 0' runs/*/*/captures/?.log | wc -l)"
    subscriber = f"[ {both} = 2 ] || exit 9; {local_lab.PROGRAMS['subscriber']}"
    result = bench.run(programs={"capture": SURPRISED, "subscriber": subscriber})
    assert bench.manifest(result).complete
    folder = RunDir(result.runs[0].run_dir)
    for host in ("a", "b"):
        assert CaptureFacts.read(folder.capture_statistics(host)) == CaptureFacts(0, 0)


def test_a_capture_that_never_reports_completion_is_waited_for_up_to_its_limit(bench, monkeypatch):
    monkeypatch.setattr(sniffer, "SETTLE_S", 0.5)
    endless = CAPTURE.replace("$asked packets captured, 3", "2 packets captured, 3")
    manifest = bench.manifest(bench.run(programs={"capture": endless}))
    assert manifest.complete
    (stop,) = (phase for phase in manifest.phases if phase.name == "stop")
    assert stop.ended_ns - stop.started_ns > 0.5e9


@pytest.mark.parametrize(
    ("outcome", "compress", "suffix"),
    [("PASS", True, ".gz"), ("FAIL", True, ""), ("PASS", False, "")],
)
def test_captures_of_passed_runs_are_compressed_on_request(
    bench, monkeypatch, outcome, compress, suffix
):
    def judge(folder):
        bench.judged.append([each.name for each in folder.captures.glob("*.pcap*")])
        return outcome, "text"

    monkeypatch.setattr(one_run, "_judge", judge)

    def write_captures(event):
        if event.phase == "judge":
            for host in "ab":
                RunDir(next(bench.folder.glob("runs/*/small-s7"))).capture(host).write_bytes(b"a")

    result = bench.run(on_event=write_captures, compress=compress)
    captures = RunDir(result.runs[0].run_dir).captures
    names = [f"a.pcap{suffix}", f"b.pcap{suffix}"]
    assert sorted(each.name for each in captures.glob("*.pcap*")) == names
    # The last verdict names the files that exist.
    assert sorted(bench.judged[-1]) == names


def test_a_disk_without_space_for_compressed_captures_does_not_fail_the_run(bench, monkeypatch):
    def refuse(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(one_run, "compress_file", refuse)

    def write_capture(event):
        if event.phase == "judge":
            RunDir(next(bench.folder.glob("runs/*/small-s7"))).capture("a").write_bytes(b"a")

    result = bench.run(on_event=write_capture, compress=True)
    assert [each.outcome for each in result.runs] == ["PASS"]
    (note,) = [each.text for each in bench.events if each.kind == "note"]
    assert note.startswith("captures were not compressed: [Errno 28] No space left")
