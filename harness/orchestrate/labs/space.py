"""Estimates the storage that a run needs, so that a shortage is reported before anything starts.

    disk     per byte of traffic: the delivered messages, two captures with their headers, and any
             recording; per stream and side: the copy of a log buffer, unless it is too long; per
             application: its log
    memory   per host: a cnc file; per stream and side: a log buffer of three terms

The figures are upper bounds on what the run will write, plus a reserve that keeps the machine
usable. The estimate ignores other users of the same disk.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.capture.log_holder import COPIED_BYTES_MAX, LOG_LENGTH_MAX
from windtunnel.harness.orchestrate.applications.application_process import LOG_BYTES_MAX
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.scenario.schema.model import Scenario

MIB = 1 << 20
DISK_PER_TRAFFIC_BYTE = 3.5
DISK_PER_RECORDED_BYTE = 1.5
DISK_RESERVE_BYTES = 256 * MIB
CNC_BYTES = 47 * MIB
LOG_METADATA_BYTES = 4096
TERMS = 3
SIDES = 2
MEMORY_RESERVE_BYTES = 16 * MIB


@dataclass(frozen=True)
class SpaceEstimate:
    """The maximum numbers of bytes that a run writes to disk and to memory."""

    disk_bytes: int
    memory_bytes: int


def estimate(scenario: Scenario) -> SpaceEstimate:
    """Estimate the storage that a run of a scenario needs."""
    ends = [len(each.from_hosts) + len(each.to_hosts) for each in scenario.traffic]
    traffic_bytes = sum(
        traffic.content.total_bytes * count / SIDES
        for traffic, count in zip(scenario.traffic, ends, strict=True)
    )
    lengths = [
        length
        for traffic, count in zip(scenario.traffic, ends, strict=True)
        for length in count * [TERMS * parse_channel(traffic.channel).term_length]
    ]
    logs = sum(length + LOG_METADATA_BYTES for length in lengths)
    kept = sum(
        length + LOG_METADATA_BYTES
        for length in lengths
        if length + LOG_METADATA_BYTES <= LOG_LENGTH_MAX
    )
    hosts = len(scenario.network.hosts)
    recorded = sum(each.content.total_bytes * len(each.archived) for each in scenario.traffic)
    disk = int(traffic_bytes * DISK_PER_TRAFFIC_BYTE + recorded * DISK_PER_RECORDED_BYTE)
    disk += min(kept, hosts * COPIED_BYTES_MAX)
    disk += len(scenario.applications) * LOG_BYTES_MAX
    return SpaceEstimate(
        disk_bytes=disk + DISK_RESERVE_BYTES,
        memory_bytes=hosts * CNC_BYTES + logs + MEMORY_RESERVE_BYTES,
    )


def require(folder: Path, bytes_needed: int, what: str) -> None:
    """Raise LabError if a folder has less free space than a run needs. The message contains both
    figures.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < bytes_needed:
        raise LabError(
            f"{what} may need {_mib(bytes_needed)} in {folder}, but "
            f"only {_mib(free_bytes)} are free: free some space there"
        )


def _mib(count_bytes: int) -> str:
    return f"{count_bytes / MIB:.0f} MiB"
