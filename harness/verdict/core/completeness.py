"""Completeness of a run's files: complete as written, or truncated later, for example in copying.

A subscriber that was killed leaves incomplete files, and the document beside them may be that of an
earlier process: what is missing then says something about the subject, and is no damaged evidence.
"""

from pathlib import Path
from signal import SIGTERM
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.records import Records, has_torn_tail
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.verdict.core.exit_codes import HARNESS_EXIT_CODES

_BY_SIGNAL = 128
"""A shell or a container reports a signal as an exit code above this."""
_ORDERLY = {*range(_BY_SIGNAL), _BY_SIGNAL + SIGTERM} - {*HARNESS_EXIT_CODES}
RESTART_SEPARATOR = "#"
"""Separates the name of a process from the number of its restart."""


def completed_writing(manifest: Manifest, name: str) -> bool:
    """Whether a process and all its restarts certainly completed their files."""
    found = [
        each for each in manifest.processes if each.name.partition(RESTART_SEPARATOR)[0] == name
    ]
    return bool(found) and all(each.exit_code in _ORDERLY for each in found)


def truncation(path: Path, dtype: np.dtype[Any]) -> str:
    """Describe how a record file was truncated; empty if it ends at a record boundary."""
    if not has_torn_tail(path, dtype):
        return ""
    return f"truncated: ends inside a record of {dtype.itemsize} bytes"


def index_mismatch(deliveries: Records, facts: SubscriberFacts) -> str:
    """Describe how an index of deliveries and its subscriber's count differ; empty if equal."""
    if len(deliveries) == facts.message_count:
        return ""
    return f"lists {len(deliveries)} messages, but the subscriber counted {facts.message_count}"


def messages_mismatch(deliveries: Records, messages: NDArray[np.uint8], *, is_whole: bool) -> str:
    """Describe how the messages file and its index differ in length; empty if they agree."""
    indexed = int(deliveries["length"].astype(np.int64).sum())
    wrong = indexed != len(messages) if is_whole else indexed > len(messages)
    if not wrong and (len(deliveries) == 0 or deliveries["length"].min() >= 0):
        return ""
    return f"the index lists {indexed} bytes, but the messages file has {len(messages)}"
