"""Check of the number of active transports in the metadata of an image's log.

    frames on path 1   |   |   |   |   |   |   |   |
    frames on path 2   |   |   |                       a path counts for the image liveness timeout
    SM                   2   2   2 . . . 2   1   1     after its last frame

Frames that a receiver rejects, beyond its window, do not keep a path active.
A receiver writes the number when it sends a status message, and applications read it to learn
whether an image still has several paths. After the last status message it may have been written
again, with fewer paths. Source: Aeron 1.53.
"""

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.log_index import IMAGES
from windtunnel.harness.artifact.middlebox.frame_class import DATA, HEARTBEAT, PAD, SETUP
from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.host_event import IMAGE_LIVENESS_NS
from windtunnel.harness.verdict.checks.counters.packet_counts import was_killed
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TOLERANCE_NS
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.wire import Wire, status_messages
from windtunnel.harness.verdict.views.acceptance import certain_heartbeats, certainly_accepted

COUNTED = "transports_counted"

_FROM_SENDER = (DATA, PAD, HEARTBEAT, SETUP)
_SAMPLES_NS = 1_000_000_000
"""Time within which any counter of a running driver is sampled again: twice the interval at which
a client's heartbeat changes."""


def transports_counted(evidence: Evidence, traffic: TrafficCase) -> Finding:
    """The log of an image has the number of paths on which frames arrived within the image liveness
    timeout before its last status message, or later.
    """
    wire, case, capture, counters = present(
        evidence.wire(traffic),
        evidence.case,
        evidence.capture_of_streams(traffic.to_host),
        evidence.host_counters(traffic.to_host),
    )
    if was_killed(evidence, traffic.to_host):
        return passed(COUNTED, "not compared: a driver of the host was killed", traffic.id)
    stream = wire.facts.session_id, wire.facts.stream_id
    kept = evidence.log_of(traffic.to_host, IMAGES, *stream)
    messages = status_messages(wire.feedback_sent)
    if isinstance(kept, Missing):
        held = evidence.log_index(traffic.to_host)
        if not isinstance(held, Missing) and any(
            each.folder == IMAGES and each.left_out for each in held
        ):
            text = "not compared: a log of an image was too long to be saved"
            return passed(COUNTED, text, traffic.id)
        return inconclusive(COUNTED, kept, traffic.id)
    where = (
        evidence.name_of(kept.path),
        evidence.name_of(evidence.folder.capture(traffic.to_host)),
    )
    if len(messages) == 0:
        return inconclusive(COUNTED, Missing(where[1], "has no status message"), traffic.id)
    arrived = capture.frames[~sent_by(capture.frames, case.address(traffic.to_host))]
    arrived = arrived[np.isin(arrived["frame_type"], _FROM_SENDER)]
    arrived = arrived[(arrived["session_id"] == stream[0]) & (arrived["stream_id"] == stream[1])]
    last_ns = int(messages["time_ns"].max())
    times_ns = capture.frames["time_ns"], counters.samples["time_ns"]
    end_ns = max(int(each.max(initial=0)) for each in times_ns) + _SAMPLES_NS
    timeout_ns = case.timeouts.image_liveness_ns or IMAGE_LIVENESS_NS
    _, most = _bounds(arrived, last_ns, end_ns, timeout_ns)
    accepted = _accepted(wire, arrived, evidence.join_position(traffic))
    least, _ = _bounds(accepted, last_ns, end_ns, timeout_ns)
    value = kept.log.metadata["active_transport_count"]
    if not least <= value <= most:
        text = f"the log of the image has {counted(value, 'active transport')}, expected "
        text += f"{least} to {most} according to the capture"
        return failed(COUNTED, text, traffic.id, evidence=where)
    text = f"{counted(value, 'active transport')}, expected {least} to {most}"
    return passed(COUNTED, text, traffic.id, evidence=where)


def _accepted(wire: Wire, arrived: Frames, start: int) -> Frames:
    """Return the frames that keep a path active for certain, in chronological order. A receiver
    ignores those beyond its window.
    """
    parts = (
        arrived[arrived["frame_type"] == SETUP],
        wire.arrived.frames[certainly_accepted(wire, start)],
        wire.heartbeats_arrived[certain_heartbeats(wire, start)],
    )
    found: Frames = np.concatenate(parts)
    return found[np.argsort(found["time_ns"], kind="stable")]


def _bounds(frames: Frames, last_ns: int, end_ns: int, timeout_ns: int) -> tuple[int, int]:
    """Return the minimum and the maximum number of active paths from `last_ns` to `end_ns`. A path
    is an address of the host at which the frames arrived.
    """
    names = ("destination_high", "destination_low", "destination_port")
    if len(frames) == 0:
        return 0, 0
    places = np.stack([frames[name].astype(np.int64) for name in names], axis=1)
    _, rows = np.unique(places, axis=0, return_inverse=True)
    path = rows.reshape(-1)
    times_ns = frames["time_ns"].astype(np.int64)
    least = most = 0
    for index in range(int(path.max()) + 1):
        own_ns = np.sort(times_ns[path == index])
        most += bool(((own_ns > last_ns - timeout_ns - TOLERANCE_NS) & (own_ns <= end_ns)).any())
        least += _is_active(own_ns, last_ns - TOLERANCE_NS, end_ns, timeout_ns - TOLERANCE_NS)
    return least, most


def _is_active(times_ns: NDArray[np.int64], begin_ns: int, end_ns: int, timeout_ns: int) -> bool:
    """Return whether a path whose frames arrived at these times was active from begin to end."""
    before = np.searchsorted(times_ns, begin_ns, side="right") - 1
    if before < 0:
        return False
    silences = np.diff(np.append(times_ns[before:], end_ns))
    return bool(silences.max() < timeout_ns)
