"""Whether files of a run are whole: as their writer left them, or cut off later, as in copying.

A subscriber that was killed has torn its files, and the document beside them may be that of another
that ran before it: what they lack is then the subject's affair, and no damage.
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
"""An exit code above this is what a shell or a container makes of a signal."""
_ORDERLY = {*range(_BY_SIGNAL), _BY_SIGNAL + SIGTERM} - {*HARNESS_EXIT_CODES}
SUCCESSOR = "#"
"""Between the name of a process and the number of one that took its place."""


def wrote_all(manifest: Manifest, name: str) -> bool:
    """Whether a process surely wrote its files to their end, and any that took its place."""
    found = [each for each in manifest.processes if each.name.partition(SUCCESSOR)[0] == name]
    return bool(found) and all(each.exit_code in _ORDERLY for each in found)


def cut_off(path: Path, dtype: np.dtype[Any]) -> str:
    """How a file of records ends that was cut off; empty where that cannot be told."""
    if not has_torn_tail(path, dtype):
        return ""
    return f"ends inside a record of {dtype.itemsize} bytes: it was cut off"


def index_misfit(deliveries: Records, said: SubscriberFacts) -> str:
    """What an index of deliveries and its subscriber say differently; empty if they agree."""
    if len(deliveries) == said.message_count:
        return ""
    return f"tells of {len(deliveries)} messages, its subscriber of {said.message_count}"


def messages_misfit(deliveries: Records, messages: NDArray[np.uint8], *, is_whole: bool) -> str:
    """Why the bytes of messages are not those that their index tells of; empty if they may be."""
    indexed = int(deliveries["length"].astype(np.int64).sum())
    wrong = indexed != len(messages) if is_whole else indexed > len(messages)
    if not wrong and (len(deliveries) == 0 or deliveries["length"].min() >= 0):
        return ""
    return f"the index tells of {indexed} bytes, the messages file has {len(messages)}"
