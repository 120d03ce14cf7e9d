"""The command line of a workload, with the case behind it read."""

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
"""What each role can be ordered to do wrong."""


@dataclass(frozen=True)
class Options:
    """What one workload is asked to do."""

    role: str
    case: Case
    traffic: TrafficCase
    """The stream as this end of it sees it."""
    aeron_dir: Path
    files: HostDir
    sabotage: str
    """Empty for an honest workload."""


def parse(arguments: Sequence[str] | None) -> Options:
    """Read the command line and the case; a fault of either ends the process with code 2."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.workload")
    parser.add_argument("role", choices=list(SABOTAGES))
    parser.add_argument("--case", type=Path, required=True, help="case.json of the run")
    parser.add_argument("--traffic", help="id of a stream of the case; a saboteur's default: first")
    parser.add_argument("--host", help="which of several publishers or subscribers this one is")
    parser.add_argument("--aeron-dir", type=Path, required=True, help="the driver's directory")
    parser.add_argument("--out", type=Path, required=True, help="where the host's files go")
    parser.add_argument("--sabotage", default="", help="what to do wrong")
    given = parser.parse_args(arguments)
    if given.sabotage and given.sabotage not in SABOTAGES[given.role]:
        known = ", ".join(SABOTAGES[given.role])
        parser.error(f"--sabotage {given.sabotage}: a {given.role} knows {known}")
    if given.role == "saboteur" and not given.sabotage:
        parser.error("a saboteur needs --sabotage")
    try:
        case = Case.read(given.case)
    except (OSError, ValueError) as error:
        parser.error(f"--case {given.case}: {error}")
    ids = [each.id for each in case.traffic]
    traffic_id = given.traffic or (ids[0] if given.role == "saboteur" else "")
    if traffic_id not in ids:
        parser.error(f"--traffic {traffic_id!r}: the case has {', '.join(ids)}")
    traffic = case.traffic_by_id(traffic_id)
    ends = traffic.ends(given.role)
    if not ends:
        parser.error(f"--traffic {traffic_id}: nobody is its {given.role}")
    if given.host and given.host not in ends:
        parser.error(f"--host {given.host}: the {given.role}s are at {', '.join(ends)}")
    traffic = traffic.at(given.host or ends[0])
    return Options(
        role=given.role,
        case=case,
        traffic=traffic,
        aeron_dir=given.aeron_dir,
        files=HostDir(given.out),
        sabotage=given.sabotage,
    )
