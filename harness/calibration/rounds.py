"""Runs calibration rounds in one lab, each with a relay, two captures and one stream.

    lab up --> (relay, netem, captures, sink, send, drain, measure)* --> lab down

A round is void if a capture lost packets or the relay reported an error, because its figures would
be wrong.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from windtunnel.harness.artifact.middlebox.ledger import Ledger, LinkAccount
from windtunnel.harness.artifact.run.calibration import Calibration
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.calibration import floors, measure, probe
from windtunnel.harness.calibration.plan import Impairment
from windtunnel.harness.capture import sniffer
from windtunnel.harness.dissect.capture.pcap import Capture, read_capture
from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.orchestrate.lab import MID, Lab, LabError
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.labs.netem import Netem
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import RunFailed, WatchedProcess
from windtunnel.harness.orchestrate.subjects import subject
from windtunnel.harness.orchestrate.teardown.state import RECORDS
from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload, TrafficCase
from windtunnel.harness.scenario.resolved.link_case import Backend
from windtunnel.harness.topology import model as topology

PORT = 24_325
SENDER, RECEIVER = "a", "b"
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
SLACK = 20.0
"""Factor by which sending may take longer than planned on a busy machine."""

Report = Callable[[str], None]


class Void(Exception):
    """Raised for a calibration round without valid results. The message says why."""


def calibrate(
    rounds: list[Impairment], backend: Backend, packets_per_s: int, seed: int, report: Report
) -> Calibration:
    """Run all calibration rounds in one lab. Raises LabError or Unsupported if the lab cannot be
    used.
    """
    result = Calibration(backend, platform.release(), packets_per_s, seed, time.time_ns())
    baseline = floors.Baseline()
    with (
        tempfile.TemporaryDirectory(prefix="windtunnel-calibrate-") as name,
        open_lab(Path(name)) as lab,
    ):
        for index, impairment in enumerate(rounds):
            report(f"[{index + 1}/{len(rounds)}] {impairment.name}")
            folder = RunDir(Path(name) / str(index))
            folder.make()
            case = case_of(lab, impairment, backend, seed + index)
            try:
                delivery = Round(lab, folder, case).make(impairment.packets, packets_per_s)
            except (Void, RunFailed) as error:
                result.voids.append(f"{impairment.name}: {error}")
                continue
            if impairment.settings is None:
                baseline = floors.baseline_of(delivery)
            rows = floors.measures(impairment, delivery, baseline, backend)
            result.measures += rows
            result.voids += floors.problems(rows)
    if baseline.problem and backend == "relay":
        result.voids.append(baseline.problem)
    return result


@contextlib.contextmanager
def open_lab(folder: Path) -> Iterator[Lab]:
    """Create a lab with two hosts and the middlebox between them, and remove it afterwards."""
    laid_out = topology.build(f"calibrate-{os.getpid()}", (SENDER, RECEIVER), (SENDER, RECEIVER))
    lab = labs.make(NETNS, laid_out, records=folder / RECORDS, runs=folder)
    lab.up()
    try:
        yield lab
    finally:
        lab.down()


def case_of(lab: Lab, impairment: Impairment, backend: Backend, seed: int) -> Case:
    """Build the relay's case (resolved scenario), with one stream and this round's impairments."""
    channel = f"aeron:udp?endpoint={lab.address(RECEIVER)}:{PORT}"
    traffic = TrafficCase(
        id="probe", ordinal=0, stream_id=probe.STREAM_ID, from_host=SENDER, to_host=RECEIVER,
        publication="exclusive", channel=channel, receive=channel, port=PORT, reliable=False,
        term_length=probe.TERM_LENGTH, mtu=1_408, initial_term_id=0, initial_position=0,
        receiver_window_bytes=None, total_bytes=1, shortest_bytes=1, longest_bytes=1,
    )  # fmt: skip
    return Case(
        name="calibrate",
        about=impairment.name,
        seed=seed,
        fidelity="netns",
        hosts=(
            HostCase(name=SENDER, address=lab.address(SENDER)),
            HostCase(name=RECEIVER, address=lab.address(RECEIVER)),
        ),
        payload=Payload(path="", sha256="", length_bytes=1),
        traffic=(traffic,),
        faults=(),
        expect=(),
        wall_ns=1,
        backend=backend,
        impairments=() if impairment.settings is None else (impairment.settings,),
    )


class Round:
    """One calibration round in a running lab."""

    def __init__(self, lab: Lab, folder: RunDir, case: Case) -> None:
        self._lab = lab
        self._folder = folder
        self._case = case
        self._watched: list[WatchedProcess] = []

    def make(self, packets: int, packets_per_s: int) -> measure.Delivery:
        """Send packets and return which of them arrived, and when. Raises Void if the results are
        not valid, or RunFailed if a process fails.
        """
        self._case.write(self._folder.case)
        netem = Netem(self._lab, self._case, self._folder.netem_log)
        try:
            self._capture()
            self._start()
            if self._case.backend == "netem":
                netem.apply()
            self._send("send", packets, packets_per_s)
            self._end("relay")
            netem.close()
            # The last packets may be in two blocks of the kernel, which are delivered one after the
            # other.
            time.sleep(2 * sniffer.SETTLE_S)
        finally:
            self._end("relay", "capture", "sink")
        return self._read()

    def flood(self, packets: int, packets_per_s: int) -> tuple[float, LinkAccount]:
        """Send packets in bursts, without captures. Returns packets/s and the link's ledger entry.

        Raises Void or RunFailed.
        """
        self._case.write(self._folder.case)
        try:
            self._start()
            sender = self._send("flood", packets, packets_per_s)
        finally:
            self._end("relay", "sink")
        self._require_relay()
        ledger = Ledger.read(self._folder.ledger)
        assert ledger is not None, "a relay with exit code 0 has written its ledger"
        took_s = float(sender.log.read_text(encoding="utf-8").split()[-1])
        return packets / took_s, ledger.links[f"{SENDER}->{RECEIVER}"]

    def _capture(self) -> None:
        lab, folder = self._lab, self._folder
        captures = [
            self._spawn(
                "capture",
                host,
                sniffer.command(lab.interface(host), lab.path(folder.capture(host))),
                folder.capture_log(host),
            )
            for host in (SENDER, RECEIVER)
        ]
        self._await(captures, lambda line: sniffer.READY in line)
        for each in captures:
            each.process.send_signal(sniffer.REPORT_SIGNAL)
        self._await(captures, sniffer.is_report)

    def _start(self) -> None:
        lab, folder = self._lab, self._folder
        relay = self._spawn(
            "relay",
            MID,
            subject.relay_command(
                lab.python(MID),
                case=lab.path(folder.case),
                interfaces=lab.mid_interfaces(),
                out=lab.path(folder.path),
            ),
            folder.relay_log,
        )
        sink = self._spawn(
            "sink", RECEIVER, self._probe("sink", RECEIVER), folder.path / "sink.log"
        )
        self._await([relay], lambda line: subject.READY in line)
        self._await([sink], lambda line: probe.READY in line)

    def _send(self, role: str, packets: int, packets_per_s: int) -> WatchedProcess:
        options = [
            *("--address", self._lab.address(RECEIVER)),
            *("--packets", str(packets)),
            *("--packets-per-s", str(packets_per_s)),
        ]
        argv = self._probe(role, SENDER) + options
        sender = self._spawn(role, SENDER, argv, self._folder.path / "send.log")
        watch.require_success([sender], READY_TIMEOUT_S + SLACK * packets / packets_per_s)
        return sender

    def _probe(self, role: str, host: str) -> list[str]:
        module = "windtunnel.harness.calibration.probe"
        return [self._lab.python(host), "-m", module, role, "--port", str(PORT)]

    def _spawn(self, role: str, place: str, argv: list[str], log: Path) -> WatchedProcess:
        process = self._lab.spawn(place, argv, log=log)
        watched = WatchedProcess(name=f"{place}/{role}", process=process, role=role, log=log)
        self._watched.append(watched)
        return watched

    def _await(self, waiting: list[WatchedProcess], ready: Callable[[str], bool]) -> None:
        watch.wait_until_ready(waiting, ready, required=self._watched, timeout_s=READY_TIMEOUT_S)

    def _end(self, *roles: str) -> None:
        ended = [each for each in self._watched if each.role in roles]
        late = watch.end(ended, STOP_TIMEOUT_S)
        if late:
            raise Void(late[0])

    def _require_relay(self) -> None:
        relay = next(each for each in self._watched if each.role == "relay")
        if relay.process.poll() != 0:
            raise Void(relay.describe_exit())

    def _read(self) -> measure.Delivery:
        self._require_relay()
        near, far = self._captured(SENDER), self._captured(RECEIVER)
        return measure.match_captures(near, far, self._lab.address(SENDER))

    def _captured(self, host: str) -> Capture:
        facts = sniffer.statistics(self._folder.capture_log(host).read_text(errors="replace"))
        if facts is None or facts.dropped_by_kernel:
            raise Void(f"the capture on host {host} lost packets")
        capture = read_capture(self._folder.capture(host), (PORT,), skip_damaged=True)
        if capture is None or capture.problem:
            raise LabError(f"the capture on host {host} cannot be read")
        return capture
