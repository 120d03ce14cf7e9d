"""Check that the drivers' packet counters agree with the captures.

    sent        a counter equals what left the host: both are final when the driver has ended
                (a killed driver might not have counted the packets of its last system call);
                Java's driver also counts the padding at the end of a term, which is not sent
    received    a counter is at most what arrived at the host, and at least what had arrived
                before the driver shut down; datagrams dropped by a full socket may be missing

All streams of a case are counted together, as they are in a driver's counters, and all of their
sessions, and those of archives. If an archive replays to its own host, as for a merge, the captures
lack these frames, and the counters may be higher. A driver that was restarted has counted only what
was sent and received since then.
"""

from dataclasses import dataclass
from signal import SIGTERM

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import SubscriberFacts
from windtunnel.harness.artifact.middlebox.frame_class import HEARTBEAT, NAK, SM
from windtunnel.harness.dissect.capture.pcap import sent_by
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.archive_frames import archive_places, of_archives
from windtunnel.harness.dissect.frames.frames import Frames
from windtunnel.harness.dissect.frames.layout import FLAG_END_OF_STREAM
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.schema.channel import parse_channel
from windtunnel.harness.verdict.checks.counters.sent_bytes import (
    first_sendings,
    java_driver_ran,
)
from windtunnel.harness.verdict.checks.flow_control.window import beyond_image_window
from windtunnel.harness.verdict.checks.retransmission.recovery import (
    SHUTDOWN_NS,
    socket_drops,
    system_value,
)
from windtunnel.harness.verdict.core.archive_wires import NOT_CAPTURED, replays_to_itself
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    failed,
    finding_of,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.wire import status_messages, unsound
from windtunnel.harness.verdict.views.pauses import counted_since_ns

AGREE = "counters_agree_with_packets"

DATAGRAM_MAX = 65507
BATCH = 16
"""Maximum number of datagrams that Aeron's drivers send in one system call."""
RECEIVED = (
    counter_key.BYTES_RECEIVED,
    counter_key.NAKS_RECEIVED_TOTAL,
    counter_key.STATUS_MESSAGES_RECEIVED,
    counter_key.HEARTBEATS_RECEIVED,
)
UNKNOWN_OF_DESTINATIONS = (counter_key.BYTES_SENT, counter_key.HEARTBEATS_SENT)
"""A sender counts a datagram once, to however many destinations it goes, even to none."""
UNKNOWN_OF_PUBLISHERS = (*UNKNOWN_OF_DESTINATIONS, *RECEIVED)
"""With several publishers of a stream, it is not known which packets were for its image."""


@dataclass(frozen=True)
class _Bound:
    """The valid range of one of a driver's packet counters."""

    counter_id: int
    least: int
    most: int
    what: str


def counters_agree_with_packets(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """Each driver's counters of sent and received packets agree with its host's capture."""
    hosts = sorted({host for each in traffics for host in (each.from_host, each.to_host)})
    return [finding_of(AGREE, host, _host_agrees, evidence, host) for host in hosts]


def _unknown_counters(case: Case, host: str) -> set[int]:
    """Return which of a host's counters cannot be compared. A driver's counters are of all its
    streams, whichever of them are judged.
    """
    unknown: set[int] = set()
    for each in case.traffic:
        if host in each.publishers and parse_channel(each.channel).control_mode:
            unknown.update(UNKNOWN_OF_DESTINATIONS)
        if host in each.subscribers and len(each.publishers) > 1:
            unknown.update(UNKNOWN_OF_PUBLISHERS)
    return unknown


def _host_agrees(evidence: Evidence, host: str) -> Finding:
    """Compare a host's counters with its capture."""
    case, capture = present(evidence.case, evidence.capture(host))
    where = (
        evidence.name_of(evidence.folder.capture(host)),
        evidence.name_of(evidence.folder.host(host).counters),
    )
    counted = capture.frames[capture.frames["time_ns"] >= counted_since_ns(evidence, host)]
    own = sent_by(counted, case.address(host))
    sent, arrived = counted[own], counted[~own]
    if len(sent) == 0 or len(arrived) == 0:
        gap = Missing(where[0], "has no packets in one of the two directions")
        return inconclusive(AGREE, gap, host)
    of_stream = ~of_archives(counted, case, host)
    received = _received(evidence, case, host, sent[of_stream[own]], arrived, of_stream[~own])
    facts = {}
    uncounted, padding = was_killed(evidence, host), java_driver_ran(evidence, host)
    bounds = (*_sent(sent, uncounted, counts_padding=padding), *received)
    unknown, is_open = _unknown_counters(case, host), replays_to_itself(case, host)
    for bound in (each for each in bounds if each.counter_id not in unknown):
        value = system_value(evidence, host, bound.counter_id)
        name = counter_key.SYSTEM_NAMES[bound.counter_id]
        facts[name] = value
        most = value if is_open else bound.most
        if bound.least - _socket_allowance(evidence, host, bound) <= value <= most:
            continue
        text = f"counter {bound.counter_id} '{name}' is {value}, but the capture shows {bound.what}"
        # A slow host explains packets that arrived and were not counted, and no other mismatch.
        late = bound.counter_id in RECEIVED and value < bound.least
        kind = Kind.STATE if late else Kind.PROTOCOL
        return failed(AGREE, text, host, evidence=where, facts=facts, kind=kind)
    text = ", ".join(f"{name} {value}" for name, value in facts.items())
    text = f"{text}{NOT_CAPTURED}" if is_open else f"counters match the capture: {text}"
    if unknown:
        text += "; not comparable, with several destinations or publishers: "
        text += ", ".join(counter_key.SYSTEM_NAMES[each] for each in sorted(unknown))
    return passed(AGREE, text, host, evidence=where, facts=facts)


def _socket_allowance(evidence: Evidence, host: str, bound: _Bound) -> int:
    """Return how far a counter may be below the captured count. Full sockets drop datagrams that
    the capture contains.
    """
    if bound.counter_id not in RECEIVED:
        return 0
    dropped = socket_drops(evidence, host)
    return dropped * DATAGRAM_MAX if bound.counter_id == counter_key.BYTES_RECEIVED else dropped


def was_killed(evidence: Evidence, host: str) -> bool:
    """Return whether a host's driver may have been killed in the middle of a duty cycle.

    A driver that shuts down normally has counted all that it sent. Only a signal that cannot be
    handled can come between a system call and the update of its counter.
    """
    manifest = evidence.manifest
    if isinstance(manifest, Missing):
        return True
    ends = {
        each.exit_code
        for each in manifest.processes
        if each.role == "driver" and each.name.startswith(f"{host}/")
    }
    return bool(ends - {0, -SIGTERM})


def _sent(sent: Frames, is_uncounted: bool, *, counts_padding: bool) -> list[_Bound]:
    """Return the valid ranges of send counters. A killed driver may not have counted its last
    send call.
    """
    first = first_sendings(sent, counts_padding=counts_padding)
    what = "bytes of new data and of heartbeats" + ", with padding" * counts_padding
    naks, messages = int((sent["frame_type"] == NAK).sum()), len(status_messages(sent))
    beats = int((sent["frame_type"] == HEARTBEAT).sum())
    longest = int(sent["datagram_length"].max(initial=0))
    counted = (
        (counter_key.BYTES_SENT, first, BATCH * longest, what),
        (counter_key.NAKS_SENT_TOTAL, naks, 1, "NAKs"),
        (counter_key.STATUS_MESSAGES_SENT, messages, 1, "status messages"),
        (counter_key.HEARTBEATS_SENT, beats, 1, "heartbeats"),
    )
    return [
        _Bound(counter, count - is_uncounted * more, count, f"{count} {text}")
        for counter, count, more, text in counted
    ]


def _received(
    evidence: Evidence,
    case: Case,
    host: str,
    sent: Frames,
    arrived: Frames,
    of_stream: NDArray[np.bool_],
) -> list[_Bound]:
    """Return the valid ranges of receive counters. The lower end counts the packets that were
    certainly processed, the upper end all captured packets. `sent` and `of_stream` are without what
    archives sent and received, of which nothing is certain.
    """
    kinds = arrived["frame_type"]
    early = of_stream & _while_sending(case, host, sent, arrived)
    found = []
    for counter, kind, what in (
        (counter_key.NAKS_RECEIVED_TOTAL, NAK, "NAKs"),
        (counter_key.STATUS_MESSAGES_RECEIVED, SM, "status messages"),
    ):
        least, most = int((early & (kinds == kind)).sum()), int((kinds == kind).sum())
        found.append(_Bound(counter, least, most, f"{least} to {most} {what}"))
    for_image, refused = np.zeros((2, len(arrived)), dtype=np.bool_)
    for traffic in (flow for each in case.traffic for flow in each.flows):
        if traffic.to_host == host:
            subscriber = present(evidence.subscriber(traffic))
            # In a group, the feedback of other members is captured, too.
            of_publisher = of_stream & sent_by(arrived, case.address(traffic.from_host))
            for_image |= of_publisher & _while_read(traffic, subscriber, sent, arrived)
            refused |= beyond_image_window(traffic, sent, arrived)
    beats = kinds == HEARTBEAT
    least, most = int((for_image & beats & ~refused).sum()), int(beats.sum())
    what = f"{least} to {most} heartbeats for images"
    found.append(_Bound(counter_key.HEARTBEATS_RECEIVED, least, most, what))
    ports = [port for each in case.traffic if host in each.subscribers for port in each.all_ports]
    ports += [port for address, port in archive_places(case) if address == case.address(host)]
    heads = np.unique(arrived["datagram"], return_index=True)[1]
    heads = heads[np.isin(arrived["destination_port"][heads], ports)]
    lengths = arrived["datagram_length"][heads].astype(np.int64)
    least, most = int(lengths[for_image[heads]].sum()), int(lengths.sum())
    what = f"{least} to {most} bytes for its subscriptions"
    return [*found, _Bound(counter_key.BYTES_RECEIVED, least, most, what)]


def _while_sending(case: Case, host: str, sent: Frames, arrived: Frames) -> NDArray[np.bool_]:
    """Return a mask of the frames that arrived well before their session's sender shut down."""
    early = np.zeros(len(arrived), dtype=np.bool_)
    for traffic in case.traffic:
        if host not in traffic.publishers:
            continue
        of_stream = sent[sent["stream_id"] == traffic.stream_id]
        for session in np.unique(of_stream["session_id"]):
            own = of_stream[of_stream["session_id"] == session]
            until_ns = int(own["time_ns"].max()) - SHUTDOWN_NS
            early |= _of_stream(traffic, own, arrived) & (arrived["time_ns"] <= until_ns)
    return early


def _of_stream(traffic: TrafficCase, own: Frames, arrived: Frames) -> NDArray[np.bool_]:
    """Return a mask of the valid frames that belong to a stream's sessions on this host."""
    found = arrived["stream_id"] == traffic.stream_id
    found &= np.isin(arrived["session_id"], np.unique(own["session_id"]))
    refused = unsound(arrived, np.full(len(arrived), traffic.term_length))
    sound: NDArray[np.bool_] = found & ~refused
    return sound


def _while_read(
    traffic: TrafficCase, subscriber: SubscriberFacts, sent: Frames, arrived: Frames
) -> NDArray[np.bool_]:
    """Return a mask of the frames that arrived while their image existed and was being read. Frames
    that arrived after the image's end of stream are excluded.
    """
    messages = status_messages(sent)
    messages = messages[messages["stream_id"] == traffic.stream_id]
    found = np.zeros(len(arrived), dtype=np.bool_)
    for session, joined_ns, left_ns in _images(subscriber, messages):
        own = messages[messages["session_id"] == session]
        own = own[(own["time_ns"] >= joined_ns) & (own["time_ns"] <= left_ns)]
        if len(own) == 0:
            continue
        ours = _of_stream(traffic, own, arrived)
        from_ns = int(own["time_ns"].min())
        until_ns = min(int(own["time_ns"].max()), left_ns - SHUTDOWN_NS)
        ends = ours & (arrived["frame_type"] == HEARTBEAT) & (arrived["time_ns"] > from_ns)
        ends &= (arrived["flags"] & FLAG_END_OF_STREAM) != 0
        if ends.any():
            until_ns = min(until_ns, int(arrived["time_ns"][ends].min()))
        found |= ours & (arrived["time_ns"] > from_ns) & (arrived["time_ns"] < until_ns)
    return found


def _images(subscriber: SubscriberFacts, messages: Frames) -> list[tuple[int, int, int]]:
    """Return the session of each image that a subscriber read, and since and until when. That of a
    stream that does not rejoin exists from its first status message on.
    """
    if subscriber.parts:
        return [(each.session_id, each.joined_ns, each.left_ns) for each in subscriber.parts]
    sessions = np.unique(messages["session_id"]).tolist()
    return [(session, 0, subscriber.ended_ns) for session in sessions]
