"""Assembles, starts, runs and stops an archive.

    settings --> directory, client, mark file, counters, catalog --> agents --> ready
                                                      conductor | recorder | replayer
    DEDICATED: a thread each    SHARED: one thread    INVOKER: the caller of `invoke`

The archive takes the mark file before it changes anything else, and marks itself as running once
clients can connect. If the start fails, the mark file shows that no archive is running.
Source: archive-protocol 4.6, 5.7.
"""

import os
import traceback
from contextlib import ExitStack
from typing import Self

from windtunnel.driver.archive.conductor.archive_conductor import ArchiveConductor
from windtunnel.driver.archive.conductor.request_table import Operations
from windtunnel.driver.archive.control.archive_resources import ArchiveResources
from windtunnel.driver.archive.control.authentication import (
    make_authenticator,
    make_authorisation_service,
)
from windtunnel.driver.archive.control.control_sessions import ControlSessions
from windtunnel.driver.archive.control.replay_tokens import ReplayTokens
from windtunnel.driver.archive.control.session_context import SessionContext
from windtunnel.driver.archive.observation.archive_counters import ArchiveCounters, require_unique
from windtunnel.driver.archive.observation.archive_errors import ArchiveErrors
from windtunnel.driver.archive.observation.cycle_time import CycleTime
from windtunnel.driver.archive.operation.listings import Listings
from windtunnel.driver.archive.operation.migration import Migration
from windtunnel.driver.archive.operation.queries import Queries
from windtunnel.driver.archive.operation.removal import Removal
from windtunnel.driver.archive.operation.segments import Segments
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.recording.image_recording import ImageRecording
from windtunnel.driver.archive.recording.recorder import Recorder
from windtunnel.driver.archive.recording.recording_requests import RecordingRequests
from windtunnel.driver.archive.recording.recordings import Recordings
from windtunnel.driver.archive.recording.segment_deletions import Deletions
from windtunnel.driver.archive.recording.segment_writer import WriteOptions
from windtunnel.driver.archive.replay.replay_run import ReadOptions
from windtunnel.driver.archive.replay.replayer import Replayer
from windtunnel.driver.archive.replay.replays import Replays
from windtunnel.driver.archive.replication.replications import Replications
from windtunnel.driver.archive.server import archive_client, archive_directory
from windtunnel.driver.archive.server.agent_thread import AgentThread
from windtunnel.driver.archive.server.id_generator import IdGenerator
from windtunnel.driver.archive.settings.archive_settings import (
    BACKOFF,
    DEDICATED,
    INVOKER,
    SLEEP,
    SPIN,
    YIELD,
    ArchiveSettings,
)
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions
from windtunnel.driver.archive.storage.checksum import Checksum, by_name
from windtunnel.driver.archive.storage.mark_file import MarkFileHeader
from windtunnel.driver.archive.storage.mark_file_writer import MarkFile
from windtunnel.driver.archive.storage.sync import SyncLevel
from windtunnel.driver.base import idle
from windtunnel.driver.base.clock import Clock, SystemClock
from windtunnel.driver.client.aeron import Aeron

_IDLE_MODES = {BACKOFF: idle.BACKOFF, YIELD: idle.YIELD, SPIN: idle.SPIN, SLEEP: idle.SLEEP}


class Archive:
    """An archive that uses one media driver."""

    def __init__(
        self,
        settings: ArchiveSettings,
        clock: Clock | None = None,
        client: Aeron | None = None,
        ids: IdGenerator | None = None,
    ) -> None:
        """Start the archive. If an Aeron client is given, the archive invokes that client and
        finally closes it.

        Raises ConfigurationError, StorageError, ActiveArchiveError, ClientError,
        DriverTimeoutError.
        """
        self.settings = settings.conclude()
        self._clock = clock or SystemClock()
        self._ids = ids or IdGenerator.of_system()
        self._threads: list[AgentThread] = []
        self._is_closed = False
        with ExitStack() as stack:
            self._make(stack, client)
            self._stack = stack.pop_all()
        if settings.threading_mode != INVOKER:
            self._start_threads()

    def _make(self, stack: ExitStack, client: Aeron | None) -> None:
        settings, clock = self.settings, self._clock
        mark_directory = settings.mark_file_dir or settings.dir
        if settings.dir_delete_on_start:
            archive_directory.empty(settings.dir, clock)
        for directory in (settings.dir, mark_directory):
            archive_directory.create(directory)
        authenticator = make_authenticator(settings.authenticator_supplier)
        authorisation = make_authorisation_service(settings.authorisation_service_supplier)
        if client is None:
            client, self.archive_id = archive_client.connect(settings, clock)
        elif settings.archive_id == NULL_VALUE:
            self.archive_id = client.client_id
        else:
            self.archive_id = settings.archive_id
        stack.callback(client.close)
        mark_file = MarkFile(settings.dir, self._mark_header(), clock, mark_directory)
        self._mark_file = mark_file
        stack.callback(mark_file.close)
        require_unique(client, self.archive_id)
        errors = self._errors = ArchiveErrors(mark_file.error_log, clock)
        counters = ArchiveCounters(client, self.archive_id, clock)
        stack.callback(counters.close)
        errors.counter = counters.errors
        catalog = archive_directory.open_catalog(
            settings.dir,
            CatalogOptions(
                settings.catalog_capacity, _checksum(settings.record_checksum),
                SyncLevel(settings.catalog_file_sync_level),
            ), clock,
        )  # fmt: skip
        stack.callback(catalog.close)
        resources = ArchiveResources(
            settings, client, clock, self.archive_id, catalog, errors, counters
        )
        self._create_agents(
            stack, resources, mark_file,
            SessionContext(
                settings, client, self.archive_id, errors, authenticator, authorisation
            ),
        )  # fmt: skip
        mark_file.ready()

    def _create_agents(
        self,
        stack: ExitStack,
        resources: ArchiveResources,
        mark_file: MarkFile,
        context: SessionContext,
    ) -> None:
        """Create the conductor, recorder and replayer, and the objects that they use."""
        settings, client, counters = self.settings, resources.client, resources.counters
        tokens = ReplayTokens(settings.connect_timeout_ns, self._ids.number)
        deletions = Deletions(resources)
        mode = settings.threading_mode
        is_dedicated = mode == DEDICATED
        recorder, replayer = Recorder(), Replayer()
        if is_dedicated:
            recorder = Recorder(
                CycleTime(
                    counters, "archive-recorder", settings.recorder_cycle_threshold_ns, mode
                ).on_turn
            )
            replayer = Replayer(
                CycleTime(
                    counters, "archive-replayer", settings.replayer_cycle_threshold_ns, mode
                ).on_turn
            )
        self._recorder, self._replayer = recorder, replayer
        images = ImageRecording(
            resources,
            WriteOptions(
                SyncLevel(settings.file_sync_level), _checksum(settings.record_checksum),
                counters.writes,
            ),
            client.add_exclusive_publication(
                settings.recording_events_channel, settings.recording_events_stream_id
            ) if settings.recording_events_enabled else None,
        )  # fmt: skip
        recordings = Recordings(resources, recorder, deletions, images)
        read_options = ReadOptions(
            directory=settings.dir, checksum=_checksum(settings.replay_checksum),
            meter=counters.reads,
        )  # fmt: skip
        replays = Replays(resources, replayer, recordings, deletions, read_options, tokens)
        operations = Operations(
            recordings, RecordingRequests(resources, recordings), replays,
            Listings(resources, recordings), Queries(resources, recordings),
            Removal(resources, recordings, replays, deletions),
            Segments(resources, recordings, replays, deletions),
            Migration(resources, recordings, deletions),
            Replications(resources, recordings, self._ids),
        )  # fmt: skip
        sessions = ControlSessions(
            context, self._request_channels(), self._ids, tokens,
            counters.control_sessions,
        )  # fmt: skip
        self._conductor = ArchiveConductor(
            resources, sessions, operations, deletions, mark_file,
            CycleTime(
                counters, "archive-conductor", settings.conductor_cycle_threshold_ns, mode
            ),
        )  # fmt: skip
        stack.callback(self._end_agents)

    def _request_channels(self) -> list[tuple[str, int]]:
        """Return the request channels and stream ids. As in Aeron, the remote channel
        comes first.
        """
        settings = self.settings
        channels = [(settings.local_control_channel, settings.local_control_stream_id)]
        if settings.control_channel_enabled:
            channels.insert(0, (settings.control_channel, settings.control_stream_id))
        return channels

    def _mark_header(self) -> MarkFileHeader:
        settings = self.settings
        is_enabled = settings.control_channel_enabled
        return MarkFileHeader(
            start_timestamp=self._clock.now_ms(), pid=os.getpid(),
            control_stream_id=settings.control_stream_id,
            local_control_stream_id=settings.local_control_stream_id,
            events_stream_id=settings.recording_events_stream_id,
            error_buffer_length=settings.error_buffer_length, archive_id=self.archive_id,
            control_channel=settings.control_channel if is_enabled else "",
            local_control_channel=settings.local_control_channel,
            events_channel=settings.recording_events_channel,
            aeron_directory=str(settings.aeron_dir),
        )  # fmt: skip

    # --- running -------------------------------------------------------------------------------

    def _start_threads(self) -> None:
        settings, default = self.settings, self.settings.idle_strategy
        agents = {"archive": (self.invoke_at, default)}
        if settings.threading_mode == DEDICATED:
            agents = {
                "archive-conductor": (self._conductor.do_work, default),
                "archive-recorder": (
                    self._recorder.do_work, settings.recorder_idle_strategy or default
                ),
                "archive-replayer": (
                    self._replayer.do_work, settings.replayer_idle_strategy or default
                ),
            }  # fmt: skip
        for name, (do_work, strategy) in agents.items():
            state = idle.make_idle(_IDLE_MODES[strategy])
            self._threads.append(AgentThread(name, do_work, state, self._clock))

    def invoke(self) -> int:
        """Run one duty cycle of all agents in INVOKER mode. Returns the amount of work done."""
        return self.invoke_at(self._clock.now_ns())

    def invoke_at(self, now_ns: int) -> int:
        """Run one duty cycle of all agents at the given time. Returns the amount of work done."""
        work_count = self._conductor.do_work(now_ns)
        work_count += self._recorder.do_work(now_ns)
        return work_count + self._replayer.do_work(now_ns)

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended an agent, or None if no agent has failed."""
        return next((each.failure for each in self._threads if each.failure is not None), None)

    def abandon(self) -> None:
        """Leave the archive as if its process had been killed: its files stay as they are, its
        client stays silent, and another archive may open the directory. For simulations in INVOKER
        mode, which must not use the archive afterwards.
        """
        self._is_closed = True
        self._mark_file.abandon()

    def close(self) -> None:
        """Stop the archive in an orderly way. Repeated calls have no effect."""
        if not self._is_closed:
            self._is_closed = True
            for thread in self._threads:
                thread.stop()
            if self.failure is not None:
                self._errors.record("".join(traceback.format_exception(self.failure)))
            self._stack.close()

    def _end_agents(self) -> None:
        self._recorder.close()
        self._replayer.close()
        self._conductor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checksum(name: str) -> Checksum | None:
    return by_name(name) if name else None
