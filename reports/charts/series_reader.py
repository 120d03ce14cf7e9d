"""Reads a run's chart data from its run folder.

If a file is missing, its part of the chart is omitted and a note is added. Each session of an
observed stream has positions of its own, and so is a stream of the chart.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.host.frame_seen import read_frames_seen
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.capture.pcap import read_capture
from windtunnel.harness.dissect.frames.flow import learn_streams
from windtunnel.harness.dissect.frames.observed_flows import (
    observed_flows,
    observed_sessions,
    of_publication,
)
from windtunnel.harness.dissect.frames.route import between
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.reports.charts.counter_lines import (
    RECEIVER_COUNTERS,
    SENDER_COUNTERS,
    Line,
    distances,
    stream_lines,
)
from windtunnel.reports.charts.marks import (
    Geometry,
    Marks,
    decision_marks,
    gap_fill_marks,
    impairment_marks,
    nak_marks,
    retransmit_marks,
)
from windtunnel.reports.charts.series import RunSeries, StreamSeries

_Part = TypeVar("_Part")
SESSIONS_MAX = 8
"""Maximum number of sessions of an observed stream that are drawn. The first ones are."""


def read_series(run: RunDir) -> RunSeries:
    """Read a run's chart data. Missing and damaged files result in notes, not errors."""
    series = RunSeries()
    case = _attempt(series, "case.json", Case.read, run.case)
    if case is None:
        return series
    decisions = _attempt(series, "the decision log", read_decisions, run.decisions)
    captures = {
        host.name: _attempt(series, f"the capture of {host.name}", _captured, run, case, host.name)
        for host in case.hosts
    }
    for flow in (flow for each in case.traffic for flow in each.flows):
        series.streams.append(_stream(series, run, case, flow, decisions, captures))
    for flow in _observed_sessions(series, case, captures):
        series.streams.append(_stream(series, run, case, flow, decisions, captures))
    return series


def _observed_sessions(
    series: RunSeries, case: Case, captures: dict[str, Records | None]
) -> Iterator[TrafficCase]:
    """Yield each session of each observed stream, with the name that it has in the results."""
    for flow in observed_flows(case, captures.get):
        sessions = observed_sessions(case, flow, captures.get(flow.from_host))
        if len(sessions) > SESSIONS_MAX:
            text = f"the first {SESSIONS_MAX} of {len(sessions)} sessions are drawn"
            series.notes.append(f"{flow.id}: {text}")
        yield from sessions[:SESSIONS_MAX]


def _attempt(
    series: RunSeries, what: str, read: Callable[..., _Part | None], *arguments: object
) -> _Part | None:
    """Read a part of the chart data with `read`. If a file cannot be read, add a note and return
    None.
    """
    try:
        found = read(*arguments)
    except (OSError, ValueError, KeyError, IndexError) as error:
        series.notes.append(f"{what} cannot be read: {error}")
        return None
    if found is None:
        series.notes.append(f"{what} is missing")
    return found


def _captured(run: RunDir, case: Case, host: str) -> Records | None:
    capture = read_capture(run.capture(host), case.aeron_ports)
    if capture is not None and capture.problem:
        raise ValueError(capture.problem)
    return None if capture is None else capture.frames


def _stream(
    series: RunSeries,
    run: RunDir,
    case: Case,
    traffic: TrafficCase,
    decisions: Records | None,
    captures: dict[str, Records | None],
) -> StreamSeries:
    """Read the chart data of a stream, or of a session of an observed one, from one host to
    another.
    """
    session_id = traffic.session_id if traffic.observed else None
    path = case.address(traffic.from_host), case.address(traffic.to_host)
    link = case.link_between(traffic.from_host, traffic.to_host)
    lines: list[Line] = []
    # The publications of a session have counters of their own, but may share an image.
    for host, names, port in (
        (traffic.from_host, SENDER_COUNTERS, traffic.session_port),
        (traffic.to_host, RECEIVER_COUNTERS, None),
    ):
        what = f"the counters of {host} for stream {traffic.stream_id}"
        lines += (
            _attempt(
                series,
                what,
                stream_lines,
                run.host(host),
                traffic.stream_id,
                session_id,
                names,
                port,
            )
            or []
        )
    sent = _of_stream(captures.get(traffic.from_host), traffic.stream_id, session_id)
    if sent is not None:
        # Frames to and from the stream's other receivers belong to those receivers' series.
        sent = sent[between(sent, *path) | between(sent, *path[::-1])]
        sent = of_publication(sent, traffic)
    received = _of_stream(captures.get(traffic.to_host), traffic.stream_id, session_id)
    if received is not None:
        received = of_publication(received, traffic)
    geometry = _geometry(series, run, traffic, sent)
    marks = []
    if decisions is not None:
        decisions = decisions[decisions["link"] >> 1 == link >> 1]
        decisions = _of_stream(decisions, traffic.stream_id, session_id)
        assert decisions is not None
        marks = decision_marks(decisions, traffic.stream_id)
        if sent is not None and received is not None and geometry is not None:
            marks += _impairment_losses(case, link, sent, received, decisions, geometry)
    if geometry is not None:
        marks += _frame_marks(series, run, traffic, geometry, sent, received)
    return StreamSeries(
        traffic_id=traffic.role,
        stream_id=traffic.stream_id,
        term_length=traffic.term_length if geometry is None else geometry.term_length,
        initial_term_id=None if geometry is None else geometry.initial_term_id,
        reliable=traffic.reliable,
        lines=lines,
        distances=distances(lines),
        marks=[each for each in marks if len(each.time_ns)],
        observed=traffic.observed,
    )


def _of_stream(rows: Records | None, stream_id: int, session_id: int | None) -> Records | None:
    """Return the frames or decisions of a stream, or of one of its sessions."""
    if rows is None:
        return None
    chosen = rows["stream_id"] == stream_id
    if session_id is not None:
        chosen &= rows["session_id"] == session_id
    found: Records = rows[chosen]
    return found


def _geometry(
    series: RunSeries, run: RunDir, traffic: TrafficCase, sent: Records | None
) -> Geometry | None:
    """Return a stream's geometry from the case, the publisher's facts or SETUP frames."""
    if traffic.initial_term_id is not None:
        return Geometry(traffic.initial_term_id, traffic.term_length)
    if not traffic.observed:
        path = run.host(traffic.from_host).publisher(traffic.id).document
        facts = _attempt(series, f"the facts of publisher {traffic.id}", PublisherFacts.read, path)
        if facts is not None:
            return Geometry(facts.initial_term_id, facts.term_length)
    setups = [] if sent is None else list(learn_streams(sent).values())
    return Geometry(setups[0].initial_term_id, setups[0].term_length) if setups else None


def _impairment_losses(
    case: Case, link: int, sent: Records, received: Records, decisions: Records, geometry: Geometry
) -> list[Marks]:
    """Return marks for frames that were lost to impairments in one direction of a link."""
    if link < 0 or case.impairments_of(case.link_names[link]) is None:
        return []
    path = [case.address(host) for host in case.directions[link]]
    sent, received = (each[between(each, *path)] for each in (sent, received))
    return [impairment_marks(sent, received, decisions[decisions["link"] == link], geometry)]


def _frame_marks(
    series: RunSeries,
    run: RunDir,
    traffic: TrafficCase,
    geometry: Geometry,
    sent: Records | None,
    received: Records | None,
) -> list[Marks]:
    marks = []
    if received is not None:
        marks.append(nak_marks(received, geometry))
    if sent is not None:
        marks.append(retransmit_marks(sent, geometry))
    if traffic.observed:
        return marks
    path = run.host(traffic.to_host).subscriber(traffic.id).frames
    seen = _attempt(series, f"the frame log of subscriber {traffic.id}", read_frames_seen, path)
    if seen is not None:
        marks.append(gap_fill_marks(seen, sent, geometry))
    return marks
