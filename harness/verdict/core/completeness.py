"""Detects incomplete files in a run folder.

A killed subscriber leaves incomplete files, next to a document that an earlier process may have
written. They are valid evidence about the subject and do not count as damaged.
"""

from pathlib import Path
from signal import SIGTERM
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.artifact.records import Records, has_torn_tail
from windtunnel.harness.artifact.run.manifest import Manifest, ProcessExit
from windtunnel.harness.dissect.capture.pcap import Capture
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.verdict.core.exit_codes import HARNESS_EXIT_CODES

_BY_SIGNAL = 128
"""Offset of a signal's number in the exit code that a shell or container reports."""
_ORDERLY = {*range(_BY_SIGNAL), _BY_SIGNAL + SIGTERM} - {*HARNESS_EXIT_CODES}
ROLE = "application"
RESTART_SEPARATOR = "#"
"""Separator between a process name and the number of its restart."""


def completed_writing(manifest: Manifest, name: str) -> bool:
    """Return whether a process and all its restarts certainly finished writing their files."""
    found = [
        each for each in manifest.processes if each.name.partition(RESTART_SEPARATOR)[0] == name
    ]
    return bool(found) and all(each.exit_code in _ORDERLY for each in found)


def application_exits(manifest: Manifest, application: ApplicationCase) -> list[ProcessExit]:
    """Return how an application and all its restarts have ended."""
    name = application_name(application)
    return [
        each
        for each in manifest.processes
        if each.role == ROLE and each.name.partition(RESTART_SEPARATOR)[0] == name
    ]


def application_name(application: ApplicationCase) -> str:
    """Return the name of an application's process in the manifest."""
    return f"{application.host}/{ROLE}-{application.id}"


def missing_packets(capture: Capture, statistics: CaptureFacts) -> str:
    """Describe what a capture lacks of the packets of its host, or return ""."""
    counts = (
        (statistics.dropped_by_kernel, "packets dropped by the kernel or the interface"),
        (capture.cut, "packets truncated to the snapshot length"),
        (capture.ip_fragments, "IP fragments, which the judge does not support"),
        (int(capture.torn), "incomplete packet at the end of the file"),
        (statistics.received - capture.packets, "packets captured but not in the file"),
    )
    return next((f"{count} {what}" for count, what in counts if count), "")


def truncation(path: Path, dtype: np.dtype[Any]) -> str:
    """Describe how a record file was truncated, or return "" if it ends at a record boundary."""
    if not has_torn_tail(path, dtype):
        return ""
    return f"is truncated: it ends inside a record of {dtype.itemsize} bytes"


def index_mismatch(deliveries: Records, facts: SubscriberFacts) -> str:
    """Describe how the delivery index and the subscriber's message count differ, or return ""."""
    if len(deliveries) == facts.message_count:
        return ""
    return f"lists {len(deliveries)} messages, but the subscriber counted {facts.message_count}"


def messages_mismatch(deliveries: Records, messages: NDArray[np.uint8], *, is_whole: bool) -> str:
    """Describe how the lengths of the messages file and its index file differ, or return ""."""
    indexed = int(deliveries["length"].astype(np.int64).sum())
    wrong = indexed != len(messages) if is_whole else indexed > len(messages)
    if not wrong and (len(deliveries) == 0 or deliveries["length"].min() >= 0):
        return ""
    return f"the index lists {indexed} bytes, but the messages file has {len(messages)}"
