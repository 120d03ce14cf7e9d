"""What is wrong with the number of destinations of a publication with control-mode=dynamic.

    SM of b        |   |   |                          5 s after its last status message, a
    SM of c        |   |   |   |   |   |   |   |      receiver is no longer a destination
    mdc-num-dest   1 2 ......................1

A receiver without an image requests SETUPs with status messages, which make it a destination, too.
If a receiver's driver was restarted, it has the same address and another receiver id: Aeron's
drivers count it twice until the timeout, ours once.
Compared in a simulation: only there, nothing but the driver can be late.
"""

import numpy as np

from windtunnel.harness.artifact.middlebox.frame_class import SM
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.schema.channel import Channel
from windtunnel.harness.verdict.core.evidence_contents import HostCounters
from windtunnel.harness.verdict.core.wire import DYNAMIC, Wire, status_messages

ADDRESS = ("source_high", "source_low", "source_port")
TIMEOUT_NS = 5_000_000_000
"""Time after which a silent receiver is no longer a destination. Source: Aeron 1.53."""
TOLERANCE_NS = 500_000_000
"""Ours and the real C driver remove a receiver 20 ms after its timeout."""


def wrong_destinations(
    wire: Wire, captured: Frames, counted: HostCounters, channel: Channel
) -> str:
    """Return what is wrong with the counter of a publication's destinations at some time, or "".

    Only compared if the host has one such counter. `captured` are all frames at its host.
    """
    counters = [each for each in counted.counters if each.type_id == counter_key.DESTINATIONS]
    if channel.control_mode != DYNAMIC or len(counters) != 1:
        return ""
    messages = status_messages(wire.feedback_arrived_from_all)
    samples = counted.samples_of(counters[0])
    if len(messages) == 0 or len(samples) == 0:
        return ""
    times_ns = messages["time_ns"].astype(np.int64)
    changed_ns, values = samples["time_ns"].astype(np.int64), samples["value"].astype(np.int64)
    port = channel.control[1] if channel.control else 0
    requests = captured[(captured["frame_type"] == SM) & (captured["destination_port"] == port)]
    surely = _Spans(messages, ADDRESS, TOLERANCE_NS, TIMEOUT_NS - TOLERANCE_NS)
    receiver = (*ADDRESS, "receiver_id")
    perhaps = _Spans(requests, receiver, -TOLERANCE_NS, TIMEOUT_NS + TOLERANCE_NS)
    at_ns = np.unique(np.concatenate((changed_ns, surely.changed_ns, perhaps.changed_ns)))
    at_ns = at_ns[(at_ns >= changed_ns[0]) & (at_ns < times_ns.max())]
    value = values[np.searchsorted(changed_ns, at_ns, side="right") - 1]
    least, most = surely.count(at_ns), perhaps.count(at_ns)
    wrong = np.flatnonzero((value < least) | (value > most))
    if len(wrong) == 0:
        return ""
    first = int(wrong[0])
    after_ms = (at_ns[first] - times_ns.min()) // 1_000_000
    return (
        f"mdc-num-dest is {value[first]} {after_ms} ms after the first status message, expected "
        f"{least[first]} to {most[first]} receivers according to the capture"
    )


class _Spans:
    """The times at which receivers are destinations: each from `begin_ns` to `end_ns` after each of
    its status messages. Receivers differ in the fields `names`.
    """

    def __init__(
        self, messages: Frames, names: tuple[str, ...], begin_ns: int, end_ns: int
    ) -> None:
        receivers = np.stack([messages[each].astype(np.int64) for each in names], axis=1)
        _, rows = np.unique(receivers, axis=0, return_inverse=True)
        times_ns, row = messages["time_ns"].astype(np.int64), rows.reshape(-1)
        order = np.lexsort((times_ns, row))
        times_ns, row = times_ns[order], row[order]
        is_apart = (np.diff(row) != 0) | (np.diff(times_ns) > end_ns - begin_ns)
        self._begins_ns = np.sort(times_ns[np.append(True, is_apart)] + begin_ns)
        self._ends_ns = np.sort(times_ns[np.append(is_apart, True)] + end_ns)
        self.changed_ns = np.append(self._begins_ns, self._ends_ns + 1)

    def count(self, at_ns: np.ndarray) -> np.ndarray:
        """Return the number of destinations at each time."""
        begun = np.searchsorted(self._begins_ns, at_ns, side="right")
        return begun - np.searchsorted(self._ends_ns, at_ns, side="left")
