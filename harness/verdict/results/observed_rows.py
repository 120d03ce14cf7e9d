"""The results of observed streams: a row of figures for each session, from captures alone.

    first frame sent --> ... --> last frame arrived, first transmissions and repairs
    |<------------------ finished after ----------->|   goodput: payload bytes that arrived / this
    |<- silence ->| new data |<- silence ->| new data

What arrived at the subscription's host is not what its application has read, so latencies are
unknown, and so are figures of messages, unless both applications report them. A stream whose image
was replaced has no row: its gaps are those of several images. Nor has one of several publications
of a session, of which each may repeat what was sent before.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.dissect.driver_files.expected_log import (
    EXPECTED_FRAME,
    NO_MESSAGE,
    ExpectedLog,
)
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.verdict.checks.observed.found_streams import observed_of
from windtunnel.harness.verdict.checks.observed.goodput import arrival_figures
from windtunnel.harness.verdict.checks.observed.reported_delivery import reported_counts
from windtunnel.harness.verdict.checks.observed.reported_messages import (
    GOT,
    SENT,
    Reports,
    reports_of,
)
from windtunnel.harness.verdict.checks.observed.sessions import (
    SESSIONS_MAX,
    image_count,
    killed_driver,
    sessions_of,
)
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.wire import FrameSequence, Wire
from windtunnel.harness.verdict.results.result_rows import link_figures, makes_copies
from windtunnel.harness.verdict.views.reader_gaps import NEVER_NS, reader_gaps
from windtunnel.harness.verdict.views.series import contiguous_by


class ObservedWire(NamedTuple):
    """One session of an observed stream at a subscriber's host with one image of it."""

    stream: str
    """Id of the stream. That of `flow` also names the session if there are several."""
    flow: TrafficCase
    wire: Wire
    """The frames of the session from the image's first position on, or, if it has several ports,
    those of one port."""
    start_position: int
    is_only_session: bool

    @property
    def new_data_ns(self) -> NDArray[np.int64]:
        """Times at which new data arrived that is in order, without a gap before it."""
        return contiguous_by(self.wire, self.start_position)[0]

    @property
    def sent_ns(self) -> tuple[int, int]:
        """Times of the first frame that was sent, and of the first signal of the end, if any."""
        begins_ns = self.wire.sent.frames["time_ns"]
        ends, _ = self.wire.end_of_stream_heartbeats(self.wire.heartbeats_sent)
        return int(begins_ns.min(initial=NEVER_NS)), int(ends["time_ns"].min(initial=NEVER_NS))


def observed_wires(evidence: Evidence, case: Case) -> Iterator[ObservedWire]:
    """Yield each session of each observed stream whose captures are complete, unless its image was
    replaced.
    """
    for traffic in observed_of(evidence, case):
        near = evidence.capture(traffic.from_host)
        if isinstance(near, Missing):
            continue
        sessions = sessions_of(near, case, traffic)[:SESSIONS_MAX]
        for flow in sessions:
            wire, planned = evidence.wire(flow), evidence.planned(flow)
            if isinstance(wire, Missing) or isinstance(planned, Missing):
                continue
            if killed_driver(evidence.host_events, flow):
                continue
            if image_count(evidence, flow, wire) > 1 or flow.session_span_ns is not None:
                continue
            start = planned.log.start_position
            # What was sent before the image began is not missing from it.
            wire = replace(wire, sent=wire.sent.where(wire.sent.starts >= start))
            if flow.session_port is not None and len(wire.sent.starts):
                # What arrived at another port of the receiver was sent by another publication.
                wire = replace(wire, arrived=wire.arrived_at(flow.session_port))
                start = int(wire.sent.starts.min())
            yield ObservedWire(traffic.id, flow, wire, start, len(sessions) == 1)


def observed_rows(evidence: Evidence, case: Case) -> Iterator[ResultRow]:
    """Yield a row for each session of each observed stream whose captures are complete."""
    reports = reports_of(evidence, case)
    for each in observed_wires(evidence, case):
        row = _row(evidence, case, each)
        sent, got = (reports.get((kind, each.stream), Reports()) for kind in (SENT, GOT))
        counts = reported_counts(sent, got) if each.is_only_session else None
        if counts is not None:
            row = replace(row, published_messages=counts[0], delivered_messages=counts[1])
        yield row


def _row(evidence: Evidence, case: Case, of: ObservedWire) -> ResultRow:
    wire, start = of.wire, of.start_position
    silences_ns = np.diff(of.new_data_ns, prepend=of.sent_ns[0])
    log = sent_log(wire.sent, start)
    has_copies = makes_copies(evidence, case, of.flow)
    gaps = reader_gaps(wire, log, start, has_copies=has_copies)
    return ResultRow(
        of.flow.id,
        of.flow.from_host,
        of.flow.to_host,
        found_stream=of.flow.stream_id if of.flow.found else None,
        longest_silence_ns=int(silences_ns.max()) if len(silences_ns) else None,
        **link_figures(gaps),
        **arrival_figures(wire),
    )


def sent_log(sent: FrameSequence, start: int) -> ExpectedLog:
    """Return the log of a publication as far as it was sent, from the frames on the wire."""
    positions, first = np.unique(sent.starts, return_index=True)
    frames = np.zeros(len(positions), dtype=EXPECTED_FRAME)
    frames["position"] = positions
    frames["message"] = NO_MESSAGE
    for name in ("frame_length", "flags", "frame_type"):
        frames[name] = sent.frames[name][first]
    end = int(sent.ends.max(initial=start))
    return ExpectedLog(frames, np.zeros(0, dtype=np.int64), start, end)
