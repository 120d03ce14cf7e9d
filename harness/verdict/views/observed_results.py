"""The results of observed streams: a row of figures for each session, from captures alone.

    first frame sent --> ... --> last frame arrived, first transmissions and repairs
    |<------------------ finished after ----------->|   goodput: payload bytes that arrived / this

What arrived at the subscription's host is not what its application has read, so latencies are
unknown, and so are figures of messages, unless both applications report them. A stream whose image
was replaced has no row: its gaps are those of several images.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

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
from windtunnel.harness.verdict.core.finding import Missing, all_or_missing
from windtunnel.harness.verdict.core.wire import FrameSequence
from windtunnel.harness.verdict.views.reader_gaps import reader_gaps
from windtunnel.harness.verdict.views.results import link_figures, makes_copies
from windtunnel.harness.verdict.views.series import contiguous_by


def observed_rows(evidence: Evidence, case: Case) -> Iterator[ResultRow]:
    """Yield a row for each session of each observed stream whose captures are complete."""
    reports = reports_of(evidence, case)
    for traffic in observed_of(evidence, case):
        sent, got = (reports.get((kind, traffic.id), Reports()) for kind in (SENT, GOT))
        near = evidence.capture(traffic.from_host)
        if isinstance(near, Missing):
            continue
        sessions = sessions_of(near, case, traffic)[:SESSIONS_MAX]
        for session_id in sessions:
            flow = traffic.model_copy(update={"session_id": session_id})
            name = f"{traffic.id} session {session_id}" if len(sessions) > 1 else traffic.id
            row = _row(evidence, case, flow, name)
            if row is None:
                continue
            counts = reported_counts(sent, got) if len(sessions) == 1 else None
            if counts is not None:
                row = replace(row, published_messages=counts[0], delivered_messages=counts[1])
            yield row


def _row(evidence: Evidence, case: Case, flow: TrafficCase, name: str) -> ResultRow | None:
    found = all_or_missing(evidence.wire(flow), evidence.planned(flow))
    if isinstance(found, Missing) or killed_driver(evidence.host_events, flow):
        return None
    wire, planned = found
    if image_count(evidence, flow, wire) > 1:
        return None
    start = planned.log.start_position
    # What was sent before the image began is not missing from it.
    wire = replace(wire, sent=wire.sent.where(wire.sent.starts >= start))
    log = sent_log(wire.sent, start)
    silences_ns = np.diff(contiguous_by(wire, start)[0])
    gaps = reader_gaps(wire, log, start, has_copies=makes_copies(evidence, case, flow))
    return ResultRow(
        name,
        flow.from_host,
        flow.to_host,
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
