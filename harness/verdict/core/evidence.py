"""Typed, lazy access to the files of a run folder. A missing file is a value, not an exception.

Each file is read at most once, see `RunReader`. No content of a run folder causes an exception
here.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    read_counters,
    read_samples,
)
from windtunnel.harness.artifact.host.delivery import DELIVERY, read_deliveries
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN, read_frames_seen
from windtunnel.harness.artifact.host.host_event import AppliedEvent, read_applied_events
from windtunnel.harness.artifact.host.host_facts import (
    CaptureFacts,
    ErrorObservation,
    SnmpFacts,
    read_error_log,
)
from windtunnel.harness.artifact.host.log_index import LogFacts, read_log_index
from windtunnel.harness.artifact.host.message_times import (
    DELIVERY_TIME,
    OFFER_TIME,
    read_delivery_times,
    read_offer_times,
)
from windtunnel.harness.artifact.host.offer import OFFER, read_offers
from windtunnel.harness.artifact.host.pressure import Pressure
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.artifact.middlebox.decision import DECISION, read_decisions
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.middlebox.netem import NetemAccount
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.artifact.run.plan import MessagePlan, plan
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.archive_files.recording_catalog import (
    read_catalog,
    segment_files,
)
from windtunnel.harness.dissect.capture.pcap import Capture, read_capture
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.expected_log import (
    EXPECTED_FRAME,
    ExpectedLog,
    expected_log,
)
from windtunnel.harness.dissect.frames.archive_frames import archive_places, of_archives
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange, read_changes
from windtunnel.harness.verdict.core.completeness import (
    completed_writing,
    index_mismatch,
    messages_mismatch,
)
from windtunnel.harness.verdict.core.evidence_contents import (
    Delivered,
    HostCounters,
    Planned,
    SavedArchive,
)
from windtunnel.harness.verdict.core.finding import Missing, or_missing, present
from windtunnel.harness.verdict.core.image_start import from_image_start, image_start
from windtunnel.harness.verdict.core.run_reader import RunReader
from windtunnel.harness.verdict.core.saved_logs import SavedLog, saved_logs
from windtunnel.harness.verdict.core.wire import Wire, wire_of

UNKNOWN_NS = -1
"""The time of an event that did not happen."""


class Evidence:
    """All evidence about one run, read from the run folder when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.folder = RunDir(path)
        self._reader = RunReader(self.folder.path)
        self.name_of = self._reader.name_of
        self.capture = cache(self._capture)
        self.capture_of_streams = cache(self._capture_of_streams)
        self.capture_statistics = cache(self._capture_statistics)
        self.planned = cache(self._planned)
        self.publisher = cache(self._publisher)
        self.subscriber = cache(self._subscriber)
        self.delivered = cache(self._delivered)
        self.due_ns = cache(self._due_ns)
        self.delivery_times_ns = cache(self._delivery_times_ns)
        self.frames_seen = cache(self._frames_seen)
        self.host_counters = cache(self._host_counters)
        self.counters_of_streams = cache(self._counters_of_streams)
        self.snmp = cache(self._snmp)
        self.pressure = cache(self._pressure)
        self.log_of = cache(self._log_of)
        self.wire = cache(self._wire)
        self.recorder = cache(self._recorder)
        self.archive = cache(self._archive)

    def close(self) -> None:
        """Release what was read, which cannot be used any more. The caches refer to their owner, so
        that it would remain, with open files, until the next garbage collection.
        """
        vars(self).clear()

    @cached_property
    def manifest(self) -> Manifest | Missing:
        return self._reader.document(self.folder.manifest, Manifest.read)

    def subject(self, host: str) -> SubjectFacts | None:
        """Return the software under test on a host, or None if it is unknown."""
        return None if isinstance(self.manifest, Missing) else self.manifest.subjects.get(host)

    @cached_property
    def case(self) -> Case | Missing:
        return self._reader.document(self.folder.case, _read_case)

    @cached_property
    def ledger(self) -> Ledger | Missing:
        return self._reader.document(self.folder.ledger, Ledger.read)

    @cached_property
    def netem(self) -> NetemAccount | Missing:
        return self._reader.document(self.folder.netem, NetemAccount.read)

    @cached_property
    def decisions(self) -> Records | Missing:
        return self._reader.records(self.folder.decisions, read_decisions, DECISION)

    @cached_property
    def host_events(self) -> list[AppliedEvent] | Missing:
        """The host events that happened, or an empty list if the scenario specifies none."""
        case = self.case
        if not isinstance(case, Missing) and not case.events:
            return []
        return self._reader.document(self.folder.host_events, read_applied_events)

    @cached_property
    def link_changes(self) -> tuple[LinkChange, ...] | Missing:
        """The changes of links while the run was in progress, if there may be any."""
        case = self.case
        if isinstance(case, Missing):
            return case
        if not case.changes_links:
            return ()
        path = self.folder.link_changes
        return self._reader.document(path, lambda at: read_changes(at, case))

    @property
    def impairments(self) -> tuple[ImpairmentCase, ...]:
        """The impairments that any link direction had at any time, as far as it is known."""
        case, changes = self.case, self.link_changes
        if isinstance(case, Missing):
            return ()
        later = () if isinstance(changes, Missing) else tuple(each.impairments for each in changes)
        return (*case.impairments, *later)

    @cached_property
    def replayed(self) -> Records | Missing:
        return self._reader.records(self.folder.replayed, read_decisions, DECISION)

    @cached_property
    def payload(self) -> NDArray[np.uint8] | Missing:
        return self._reader.content(self.folder.payload)

    @or_missing
    def _planned(self, traffic: TrafficCase) -> Planned | Missing:
        if traffic.observed:
            return self._observed(traffic)
        payload, case = present(self.payload, self.case)
        if len(payload) == 0:
            return Missing(self.name_of(self.folder.payload), "is empty")
        messages = plan(
            case.seed,
            traffic.plan_id,
            traffic.total_bytes,
            longest=traffic.longest_bytes,
            shortest=traffic.shortest_bytes,
        )
        log = expected_log(
            messages.lengths, traffic.mtu, traffic.term_length, traffic.initial_position
        )
        return Planned(messages, log, payload)

    def _observed(self, traffic: TrafficCase) -> Planned:
        """Return what is known about the plan of an observed stream: where its image began."""
        start = image_start(*present(self.wire(traffic), self.capture(traffic.to_host)))
        nothing = np.zeros(0, dtype=np.int64)
        log = ExpectedLog(np.zeros(0, dtype=EXPECTED_FRAME), nothing, start, start)
        return Planned(MessagePlan(nothing, nothing), log, np.zeros(0, dtype=np.uint8))

    @or_missing
    def _capture(self, host: str) -> Capture | Missing:
        case = present(self.case)
        path = self.folder.capture(host)
        # If the scenario corrupts packets, a datagram that the receiver's kernel rejects did not
        # arrive.
        corrupts = any(each.corrupt_ppb for each in self.impairments)
        ports = case.aeron_ports
        found = self._reader.document(
            path, lambda at: read_capture(at, ports, skip_damaged=corrupts)
        )
        if isinstance(found, Capture) and found.problem:
            return Missing(self.name_of(path), found.problem, damaged=True)
        return found

    @or_missing
    def _capture_of_streams(self, host: str) -> Capture | Missing:
        """Return a capture without the frames of archives' own streams: a replicated recording has
        the ids of the recorded stream.
        """
        case, capture = present(self.case, self.capture(host))
        apart = of_archives(capture.frames, case, host)
        return replace(capture, frames=capture.frames[~apart]) if apart.any() else capture

    def _capture_statistics(self, host: str) -> CaptureFacts | Missing:
        return self._reader.document(self.folder.capture_statistics(host), CaptureFacts.read)

    def _publisher(self, traffic: TrafficCase) -> PublisherFacts | Missing:
        files = self.folder.host(traffic.from_host).publisher(traffic.id)
        return self._reader.document(files.document, PublisherFacts.read)

    def _subscriber(self, traffic: TrafficCase) -> SubscriberFacts | Missing:
        files = self.folder.host(traffic.to_host).subscriber(traffic.id)
        return self._reader.document(files.document, SubscriberFacts.read)

    def join_position(self, traffic: TrafficCase) -> int:
        """Return the position at which the subscriber's image joined, or 0 if that is unknown."""
        subscriber = self.subscriber(traffic)
        return 0 if isinstance(subscriber, Missing) else subscriber.join_position

    @or_missing
    def _delivered(self, traffic: TrafficCase) -> Delivered | Missing:
        files = self.folder.host(traffic.to_host).subscriber(traffic.id)
        whole = self._wrote_all(traffic)
        deliveries, messages = present(
            self._reader.records(files.index, read_deliveries, DELIVERY, whole=whole),
            self._reader.content(files.messages),
        )
        subscriber = self.subscriber(traffic)
        if (
            whole
            and not isinstance(subscriber, Missing)
            and (why := index_mismatch(deliveries, subscriber))
        ):
            return Missing(self.name_of(files.index), why, damaged=True)
        if why := messages_mismatch(deliveries, messages, is_whole=whole):
            return Missing(self.name_of(files.messages), why, damaged=True)
        return Delivered(deliveries, messages)

    @or_missing
    def _due_ns(self, traffic: TrafficCase) -> NDArray[np.int64] | Missing:
        """Return the time at which each planned message was first offered, or UNKNOWN_NS."""
        files = self.folder.host(traffic.from_host).publisher(traffic.id)
        offers, times_ns, planned = present(
            self._reader.records(files.offers, read_offers, OFFER),
            self._reader.times_ns(files.times, read_offer_times, OFFER_TIME),
            self.planned(traffic),
        )
        index = offers["message_index"]
        known = (index >= 0) & (index < planned.plan.count)
        if len(times_ns) != len(offers) or not known.all():
            why = f"has {len(times_ns)} times for {len(offers)} offers of planned messages"
            return Missing(self.name_of(files.times), why, damaged=True)
        due_ns = np.full(planned.plan.count, UNKNOWN_NS, dtype=np.int64)
        due_ns[index] = times_ns
        return due_ns

    @or_missing
    def _delivery_times_ns(self, traffic: TrafficCase) -> NDArray[np.int64] | Missing:
        """Return the time at which each message was delivered to the subscriber."""
        files = self.folder.host(traffic.to_host).subscriber(traffic.id)
        times_ns, delivered = present(
            self._reader.times_ns(files.times, read_delivery_times, DELIVERY_TIME),
            self.delivered(traffic),
        )
        if len(times_ns) != len(delivered.deliveries):
            why = f"has {len(times_ns)} times for {len(delivered.deliveries)} deliveries"
            return Missing(self.name_of(files.times), why, damaged=True)
        return times_ns

    def _frames_seen(self, traffic: TrafficCase) -> Records | Missing:
        files = self.folder.host(traffic.to_host).subscriber(traffic.id)
        whole = self._wrote_all(traffic)
        return self._reader.records(files.frames, read_frames_seen, FRAME_SEEN, whole=whole)

    def _wrote_all(self, traffic: TrafficCase) -> bool:
        """Return whether a subscriber certainly finished writing its files."""
        name = f"{traffic.to_host}/subscriber-{traffic.id}"
        return not isinstance(self.manifest, Missing) and completed_writing(self.manifest, name)

    @or_missing
    def _host_counters(self, host: str) -> HostCounters | Missing:
        files = self.folder.host(host)
        counters = present(self._reader.document(files.counters, read_counters))
        samples = self._reader.records(files.counter_samples, read_samples, COUNTER_SAMPLE)
        return HostCounters(counters, present(samples))

    @or_missing
    def _counters_of_streams(self, host: str) -> HostCounters | Missing:
        """Return a host's counters without those of archives' own streams."""
        case, counted = present(self.case, self.host_counters(host))
        places = [f"{address}:{port}" for address, port in archive_places(case)]
        left = [each for each in counted.counters if counter_key.endpoint(each) not in places]
        return replace(counted, counters=left)

    def _snmp(self, host: str) -> SnmpFacts | Missing:
        return self._reader.document(self.folder.host(host).snmp, SnmpFacts.read)

    def _pressure(self, host: str) -> Pressure | Missing:
        return self._reader.document(self.folder.host(host).pressure, Pressure.read)

    def log_index(self, host: str) -> list[LogFacts] | Missing:
        """Return the list of the log buffers that a host's driver had at the end."""
        return self._reader.document(self.folder.host(host).log_index, read_log_index)

    def error_log(self, host: str) -> list[ErrorObservation] | Missing:
        """Return the error log of a host's driver."""
        return self._reader.document(self.folder.host(host).cnc_errors, read_error_log)

    def _log_of(
        self, host: str, folder: str, session_id: int, stream_id: int
    ) -> SavedLog | Missing:
        """Return a stream's newest log buffer from one of the driver's two log folders."""
        return next(self.logs_of(host, folder, session_id, stream_id))

    def logs_of(
        self, host: str, folder: str, session_id: int, stream_id: int
    ) -> Iterator[SavedLog | Missing]:
        """Yield a stream's log buffers from one of the driver's two log folders, newest first, and
        why there is not another one.
        """
        held = self.log_index(host)
        if isinstance(held, Missing):
            yield held
            return
        files = self.folder.host(host)
        held = [each for each in held if each.registration_id not in self._copies(host)]
        yield from saved_logs(self._reader, files, held, folder, session_id, stream_id)

    def _copies(self, host: str) -> set[int]:
        """Return the registration ids of archives' own publications and images, as far as counters
        show them.
        """
        counted, left = self.host_counters(host), self.counters_of_streams(host)
        if isinstance(counted, Missing) or isinstance(left, Missing):
            return set()
        streams = {*map(id, left.counters)}
        return {each.registration_id for each in counted.counters if id(each) not in streams}

    def _recorder(self, host: str, traffic_id: str) -> RecorderFacts | Missing:
        files = self.folder.host(host).recorder(traffic_id)
        return self._reader.document(files.document, RecorderFacts.read)

    def _archive(self, host: str) -> SavedArchive | Missing:
        return self._reader.document(self.folder.host(host).archive, _read_archive)

    @or_missing
    def _wire(self, traffic: TrafficCase) -> Wire | Missing:
        case, near, far = present(
            self.case,
            self.capture_of_streams(traffic.from_host),
            self.capture_of_streams(traffic.to_host),
        )
        others = [each for each in traffic.publishers if each != traffic.from_host]
        beside = [(each, present(self.capture_of_streams(each))) for each in others]
        wire = wire_of(near, far, case, traffic, beside)
        if wire is None:
            path = self.name_of(self.folder.capture(traffic.from_host))
            why = f"has no SETUP of stream {traffic.stream_id} sent by the publisher's host"
            return Missing(path, why)
        return from_image_start(wire, image_start(wire, far)) if traffic.observed else wire


def _read_case(path: Path) -> Case | None:
    return Case.read(path) if path.exists() else None


def _read_archive(path: Path) -> SavedArchive | None:
    return SavedArchive(read_catalog(path), segment_files(path)) if path.exists() else None
