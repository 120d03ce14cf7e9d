"""The command line of a workload, including the case file that it names."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase

SKIP_MESSAGE = "skip-message"
FLIP_BYTE = "flip-byte"
LYING_COUNTER = "lying-counter"
NAK_WHEN_UNRELIABLE = "nak-when-unreliable"

SABOTAGES = {
    "publisher": (SKIP_MESSAGE,),
    "subscriber": (FLIP_BYTE,),
    "recorder": (),
    "replayer": (),
    "replicator": (),
    "saboteur": (LYING_COUNTER, NAK_WHEN_UNRELIABLE),
}
"""The faults that each workload role can inject."""


@dataclass(frozen=True)
class Options:
    """Options of one workload."""

    role: str
    case: Case
    traffic: TrafficCase
    """The stream, with the addresses as seen from this host."""
    aeron_dir: Path
    files: HostDir
    sabotage: str
    """The fault to inject, or an empty string."""


def parse(arguments: Sequence[str] | None) -> Options:
    """Parse the command line and read the case. An error ends the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.workload")
    parser.add_argument("role", choices=list(SABOTAGES))
    parser.add_argument("--case", type=Path, required=True, help="the run's case.json")
    parser.add_argument(
        "--traffic", help="id of a stream in the case (default for a saboteur: the first)"
    )
    parser.add_argument("--host", help="host of this workload, if several hosts have its role")
    parser.add_argument("--aeron-dir", type=Path, required=True, help="the driver's directory")
    parser.add_argument("--out", type=Path, required=True, help="folder for the host's files")
    parser.add_argument("--sabotage", default="", help="fault to inject")
    parsed = parser.parse_args(arguments)
    if parsed.sabotage and parsed.sabotage not in SABOTAGES[parsed.role]:
        known = ", ".join(SABOTAGES[parsed.role])
        parser.error(f"--sabotage {parsed.sabotage}: a {parsed.role} accepts {known or 'none'}")
    if parsed.role == "saboteur" and not parsed.sabotage:
        parser.error("a saboteur needs --sabotage")
    try:
        case = Case.read(parsed.case)
    except (OSError, ValueError) as error:
        parser.error(f"--case {parsed.case}: {error}")
    ids = [each.id for each in case.traffic]
    traffic_id = parsed.traffic or (ids[0] if parsed.role == "saboteur" else "")
    if traffic_id not in ids:
        parser.error(f"--traffic {traffic_id!r}: expected one of {', '.join(ids)}")
    traffic = case.traffic_by_id(traffic_id)
    ends = traffic.ends(parsed.role)
    if not ends:
        parser.error(f"--traffic {traffic_id}: the stream has no {parsed.role}")
    if parsed.host and parsed.host not in ends:
        parser.error(
            f"--host {parsed.host}: expected a host with a {parsed.role}: {', '.join(ends)}"
        )
    traffic = traffic.at(parsed.host or ends[0])
    return Options(
        role=parsed.role,
        case=case,
        traffic=traffic,
        aeron_dir=parsed.aeron_dir,
        files=HostDir(parsed.out),
        sabotage=parsed.sabotage,
    )
