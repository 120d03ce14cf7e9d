"""The last files of a run: statistics of captures and UDP, versions, agreement of a replay."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from windtunnel.harness.artifact.host.host_facts import SnmpFacts, udp_lines
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.run.agreement import agreement
from windtunnel.harness.artifact.run.manifest import Manifest, version_text
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate import facts
from windtunnel.harness.orchestrate.lab import Lab, LabError
from windtunnel.harness.orchestrate.processes import watch
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess
from windtunnel.harness.scenario.resolved.case import Case


def wait_for_captures(captures: Sequence[WatchedProcess]) -> None:
    """Wait until all captures are complete or the time limit is reached."""
    unsettled = [(each, sniffer.Settling(time.monotonic())) for each in captures]
    for each, _ in unsettled:
        each.new_lines()
    while unsettled := [
        (each, settling)
        for each, settling in unsettled
        if each.process.poll() is None and not settling.is_over(time.monotonic())
    ]:
        for each, _ in unsettled:
            each.process.send_signal(sniffer.REPORT_SIGNAL)
        time.sleep(watch.POLL_S)
        for each, settling in unsettled:
            for line in each.new_lines():
                settling.update(line, time.monotonic())


def write_capture_statistics(folder: RunDir, hosts: Sequence[str]) -> None:
    """Write what the capture programs printed at their ends, for each host with a capture."""
    for host in hosts:
        log = folder.capture_log(host)
        if log.exists():
            found = sniffer.statistics(log.read_text(errors="replace"))
            if found is not None:
                found.write(folder.capture_statistics(host))


def write_snmp(folder: RunDir, lab: Lab, before: Mapping[str, dict[str, int]]) -> list[str]:
    """Write each host's UDP statistics, given those from before the traffic. Returns the errors."""
    errors = []
    for host, counts in before.items():
        try:
            after = udp_lines(lab.read(host, "/proc/net/snmp").decode())
        except LabError as error:
            errors.append(f"statistics of host {host}: {error}")
            continue
        SnmpFacts(counts, after).write(folder.host(host).snmp)
    return errors


def write_agreement(original: str, case: Case, folder: RunDir) -> None:
    """In a replay, write how many of the original run's decisions were repeated."""
    expected, actual = read_decisions(folder.replayed), read_decisions(folder.decisions)
    if expected is not None and actual is not None:
        agreement(original, expected, actual, case.link_names).write(folder.replay)


def record_versions(manifest: Manifest, folder: RunDir) -> None:
    """Record the version of each driver in the manifest, and as a comment in repro.txt."""
    remarks = []
    own = manifest.versions.get("windtunnel", "")
    for host, tested in manifest.subjects.items():
        tested.version = facts.driver_version(folder.host(host).counters)
        remarks.append(f"{host}: {tested.peer} {version_text(tested.version, own)}".rstrip())
    with contextlib.suppress(OSError), folder.repro.open("a") as repro:
        repro.write(f"# {', '.join(remarks)}\n")
