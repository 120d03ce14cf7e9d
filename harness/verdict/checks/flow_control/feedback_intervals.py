"""Check of feedback that a receiver repeats by the clock, whatever arrives.

    SM, SEND_SETUP     to a control address                          each second
                       of a session whose SETUP is unknown           at most each second
    ERR                of an image that its subscriber has rejected  each status message timeout

What a publication does with such a frame has a cost: it sends a SETUP, or writes to its error log.
A receiver may begin again, for example with a new socket, so one frame more is permitted, but not
if a simulation has nothing that opens a socket again. A flood
can also overload the harness; the frames that were captured are enough to fail.
Source: Aeron 1.53, pending SETUPs and rejected images.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox.frame_class import ERR, SM
from windtunnel.harness.artifact.noun_form import counted
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.dissect.frames.layout import SM_FLAG_SEND_SETUP
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.flow_control.status_message_checks import TIMEOUT_NS
from windtunnel.harness.verdict.checks.retransmission.nak_checks import PACE_SLACK_NS
from windtunnel.harness.verdict.core.driver_setting import duration_setting_ns
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Finding, failed, finding_of, passed, present
from windtunnel.harness.verdict.core.virtual import is_virtual

SPACED = "feedback_spaced"

ELICIT_INTERVAL_NS = 1_000_000_000
"""Time after which a receiver elicits a SETUP again. Source: Aeron 1.53,
AERON_DRIVER_RECEIVER_PENDING_SETUP_TIMEOUT_NS."""
TIMEOUT_SETTING = "AERON_RCV_STATUS_MESSAGE_TIMEOUT"
_WAY = (
    *("source_port", "destination_high", "destination_low", "destination_port"),
    *("session_id", "stream_id"),
)
"""Two sockets, or two streams, have intervals of their own."""


def feedback_spaced(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """A receiver elicits the same SETUP at most once per second, and repeats a rejection at most
    once per status message timeout.
    """
    case = present(evidence.case)
    findings = []
    for host in case.hosts:
        timeout_ns = duration_setting_ns(case, host.name, TIMEOUT_SETTING, TIMEOUT_NS) or 0
        findings.append(
            finding_of(
                SPACED,
                host.name,
                _host,
                evidence,
                host.name,
                case.address(host.name),
                timeout_ns,
                opens_once=_opens_once(case),
            )
        )
    return findings


def _opens_once(case: Case) -> bool:
    """Return whether each socket of a run is opened once, and no capture is late."""
    changes = case.exercises or case.events or any(each.rejoins for each in case.traffic)
    return is_virtual(case) and not changes


def _host(
    evidence: Evidence, host: str, address: str, timeout_ns: int, *, opens_once: bool
) -> Finding:
    capture = present(evidence.capture(host))
    where = (evidence.name_of(evidence.folder.capture(host)),)
    own = capture.frames[sent_by(capture.frames, address)]
    elicits = (own["frame_type"] == SM) & ((own["flags"] & SM_FLAG_SEND_SETUP) != 0)
    requests, rejections = own[elicits], own[own["frame_type"] == ERR]
    for frames, interval_ns, what in (
        (requests, ELICIT_INTERVAL_NS, "requests for a SETUP"),
        (rejections, timeout_ns, "rejections"),
    ):
        for times_ns, session, stream in _series(frames):
            lead_ns = _lead_ns(times_ns, interval_ns)
            is_exact = opens_once and frames is requests and session == stream == 0
            if lead_ns <= PACE_SLACK_NS + (0 if is_exact else interval_ns):
                continue
            text = (
                f"{len(times_ns)} {what} of session {session}, stream {stream} were up to "
                f"{lead_ns / 1e6:.1f} ms early, expected one in {interval_ns // 1_000_000} ms"
            )
            return failed(SPACED, text, host, evidence=where, conclusive=True)
    text = f"{counted(len(requests), 'request')} for a SETUP and "
    text += f"{counted(len(rejections), 'rejection')}, none too early"
    return passed(SPACED, text, host, evidence=where)


def _series(frames: Frames) -> Iterator[tuple[NDArray[np.int64], int, int]]:
    """Yield the times of the frames of each socket and stream, in ascending order, with the session
    and the stream.
    """
    if len(frames) == 0:
        return
    ways = np.stack([frames[name].astype(np.int64) for name in _WAY], axis=1)
    found, rows = np.unique(ways, axis=0, return_inverse=True)
    for row, way in enumerate(found.tolist()):
        times_ns = np.sort(frames["time_ns"][rows.reshape(-1) == row].astype(np.int64))
        yield times_ns, way[-2], way[-1]


def _lead_ns(times_ns: NDArray[np.int64], interval_ns: int) -> int:
    """Return the longest time by which a frame was sent early. After each frame, another is due one
    interval later. Frames that are late do not make later ones early.
    """
    due_ns = times_ns - interval_ns * np.arange(len(times_ns))
    return int((np.maximum.accumulate(due_ns) - due_ns).max(initial=0))
