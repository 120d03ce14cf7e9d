"""The Python part of the conductor's duty cycle: client commands, events from the other agents, and
timers.

A duty cycle executes at most one command, then the events, then the timers, and frees unused log
buffers. Work that the network can multiply is limited by time: what remains is done in later duty
cycles. Between these duty cycles, a compiled kernel rebuilds images and updates publication limits
without entering Python. Source: spec 7.3 and 10.2, Aeron 1.53.
"""

import errno
import traceback
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from windtunnel.driver.base import handoff, idle
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.cnc import ring_buffer, ring_buffer_reader
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.command.codec import Command, decode_command
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.payload import MalformedCommand, UnknownCommand
from windtunnel.driver.kernels.jit import compile_for
from windtunnel.driver.media_driver.command_error import CommandError, CommandPendingError
from windtunnel.driver.media_driver.conductor import conductor_state, shared_agents
from windtunnel.driver.media_driver.conductor.components import Components
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.error_codes import code_of, logged_code_of
from windtunnel.driver.media_driver.conductor.images.conductor_image import PublicationImage, State
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredReaders
from windtunnel.driver.media_driver.conductor.lost_pages import LostPages
from windtunnel.driver.media_driver.conductor.publications.retired_logs import free_retired_logs
from windtunnel.driver.media_driver.conductor.unblocking import CommandUnblocker
from windtunnel.driver.media_driver.conductor.waiting_commands import WaitingCommands
from windtunnel.driver.media_driver.receiver import receiver_state
from windtunnel.driver.media_driver.sender import sender_state

EVENTS_PER_TURN_MAX = 64
"""Maximum number of events per agent and duty cycle. Events from network frames could otherwise
delay commands and timers."""

EVENTS_DURATION_NS_MAX = 200_000
"""Time limit, in nanoseconds, for processing an agent's events in one duty cycle. Creating an
image takes longer than handling other events, and in SHARED mode the sender and the receiver wait
meanwhile."""

CHECKS_DURATION_NS_MAX = 200_000
"""Time limit, in nanoseconds, for checking images in one duty cycle."""

FREEING_DURATION_NS_MAX = 1_000_000
"""Time after which a duty cycle frees no further log buffer, in nanoseconds. The kernel needs about
20 ms for one of 48 MiB, and threads of other agents may wait for the processor meanwhile."""
FREEING_PAUSE_RATIO = 4
"""Pause before the next log buffers are freed, in multiples of the time that the last ones took."""

MALFORMED = "malformed command"
"""Name under which the error log groups the errors about commands that cannot be decoded."""
UNKNOWN = "unknown command"
"""Name under which the error log groups the errors about commands of an unknown type."""

PENDING_WORK_INTERVAL_NS = 1_000_000
"""Interval in nanoseconds at which finished name lookups are collected while commands wait for
them, and at which unfinished checks of images continue."""

POLL_INTERVAL_NS = 10_000_000
"""Interval in nanoseconds at which the name resolver's socket and lookups in the background are
polled, and at which some of the unused log buffers are freed."""

WATCH_INTERVAL_NS = 50_000_000
"""Interval in nanoseconds at which the endpoints whose names may be looked up again are checked."""


class Conductor:
    """The conductor of a driver. Only the conductor's thread calls its methods."""

    def __init__(
        self,
        resources: DriverResources,
        manager: CountersManager,
        on_terminate: Callable[[], None] = lambda: None,
    ) -> None:
        self._resources = resources
        self.components = Components(resources, manager, on_terminate)
        self._handlers = self.components.command_handlers()
        self._waiting = WaitingCommands(resources.names, self._execute)
        self._untethered = UntetheredReaders(resources, self.components.links)
        self._command_unblocker = CommandUnblocker(resources)
        components = self.components
        self._lost_pages = LostPages(
            resources, components.images, components.network, components.ipc
        )
        self._scratch = ring_buffer_reader.make_scratch(resources.cnc.to_driver)
        self._record = handoff.make_record()
        self._next_timer_ns = 0
        self._next_freeing_ns = 0
        self._image_checks: Iterator[None] | None = None
        self._is_command_pending = False
        self._sender_events = self._make_sender_events()
        self._receiver_events = self._make_receiver_events()

    def do_work(self, now_ns: int) -> int:
        """Run the Python part of one conductor duty cycle. Returns the work count."""
        work_count = 0
        if now_ns >= self._next_timer_ns:
            # Before commands, as in Aeron: keepalives that waited longer than the client liveness
            # timeout, because the driver was stopped, are too late.
            self._next_timer_ns = now_ns + self._resources.context.timer_interval_ns
            self._on_timer(now_ns, self._resources.clock.now_ms())
            work_count += 1
        work_count += self._on_command() + self._on_events(now_ns)
        work_count += self._resources.names.do_work(now_ns) + self._waiting.do_work()
        work_count += self.components.reresolution.do_work(now_ns)
        work_count += self._continue_image_checks()
        if self._resources.retired_logs and now_ns >= self._next_freeing_ns:
            work_count += self._free_logs()
        return work_count

    def run(self, quantum_ns: int) -> None:
        """Run the conductor's compiled part for at most `quantum_ns`, then its Python part once."""
        self._run_alone(self._resources.conductor, self._deadline_ns(quantum_ns))
        self._do_work_and_idle()

    def run_all(self, quantum_ns: int) -> None:
        """Run all three agents in this thread for at most `quantum_ns` (SHARED mode)."""
        resources = self._resources
        self._run_shared(
            resources.conductor,
            resources.sender,
            resources.receiver,
            self._deadline_ns(quantum_ns),
        )
        self._do_work_and_idle()

    # Bound to the types of the states, since determining them takes longer than a duty cycle.

    @cached_property
    def _run_alone(self) -> Callable[..., None]:
        return compile_for(conductor_state.run, (self._resources.conductor, 0))

    @cached_property
    def _run_shared(self) -> Callable[..., None]:
        states = (self._resources.conductor, self._resources.sender, self._resources.receiver)
        return compile_for(shared_agents.run_all, (*states, 0))

    def _do_work_and_idle(self) -> None:
        work_count = self.do_work(self._resources.clock.now_ns())
        if self._is_command_pending:
            # The compiled part returns immediately while a command is pending, so idle here.
            idle.after_turn(self._resources.conductor.idle, work_count)

    def _deadline_ns(self, quantum_ns: int) -> int:
        resources = self._resources
        if self._waiting.has_commands or self._image_checks is not None:
            quantum_ns = min(quantum_ns, PENDING_WORK_INTERVAL_NS)
        elif resources.names.is_polled or resources.retired_logs:
            quantum_ns = min(quantum_ns, POLL_INTERVAL_NS)
        elif self.components.reresolution.is_watching:
            quantum_ns = min(quantum_ns, WATCH_INTERVAL_NS)
        return min(resources.clock.now_ns() + quantum_ns, self._next_timer_ns)

    def track(self, now_ns: int) -> int:
        """Run the compiled part of one conductor duty cycle: rebuild images and update publication
        limits.
        """
        now_ms = self._resources.clock.now_ms()
        return int(conductor_state.track(self._resources.conductor, now_ns, now_ms))

    def _on_command(self) -> int:
        ring = self._resources.cnc.to_driver
        type_id, length = ring_buffer_reader.peek(ring, self._scratch)
        if type_id == ring_buffer_reader.NO_MESSAGE:
            return 0
        if type_id == ring_buffer_reader.CORRUPT:
            self._resources.record_error(
                ErrorCode.MALFORMED_COMMAND,
                f"skipped {length} bytes of the command ring buffer without a valid record",
                MALFORMED,
            )
            return 1
        try:
            command = decode_command(type_id, self._scratch[:length])
        except MalformedCommand as error:
            # As in the C driver, no client can be informed without a valid correlation id.
            kind = UNKNOWN if isinstance(error, UnknownCommand) else MALFORMED
            self._resources.record_error(error.error_code, str(error), kind)
            ring_buffer_reader.advance(ring)
            return 1
        try:
            self._waiting.execute(command)
        except CommandPendingError:
            self._is_command_pending = True
            return 0
        except CommandError as error:
            self._report(command, error)
        self._is_command_pending = False
        ring_buffer_reader.advance(ring)
        self._resources.names.on_command_end()
        return 1

    def _free_logs(self) -> int:
        clock, limit = self._resources.clock, self._resources.context.resource_free_limit
        began_ns = clock.now_ns()
        count = free_retired_logs(self._resources, limit, FREEING_DURATION_NS_MAX)
        ended_ns = clock.now_ns()
        self._next_freeing_ns = ended_ns + FREEING_PAUSE_RATIO * (ended_ns - began_ns)
        return count

    def _execute(self, command: Command) -> None:
        handler = self._handlers.get(type(command))
        kind = type(command).__name__
        try:
            if handler is None:
                raise CommandError(
                    f"{type(command).__name__} is not supported", ErrorCode.NOT_SUPPORTED
                )
            handler(command)
        except CommandPendingError:
            raise
        except DriverError as error:
            self._report(command, error)
        except OSError as error:
            code = -(error.errno or errno.EINVAL)
            self._resources.record_error(code, str(error), kind)
            self._resources.clients.on_error(
                command.correlation_id, ErrorCode.GENERIC_ERROR, str(error)
            )
        except Exception as error:
            # This is a driver bug, but a client's command must not end the driver for all clients.
            # The message precedes the stack trace, since a long error log entry is truncated.
            text = f"{type(error).__name__}: {error}"
            self._resources.record_error(
                ErrorCode.GENERIC_ERROR, f"{text}\n{traceback.format_exc()}", kind
            )
            self._resources.clients.on_error(command.correlation_id, ErrorCode.GENERIC_ERROR, text)

    def _report(self, command: Command, error: DriverError) -> None:
        kind = type(command).__name__
        self._resources.record_error(logged_code_of(error), str(error), kind)
        self._resources.clients.on_error(command.correlation_id, code_of(error), str(error))

    def _make_sender_events(self) -> dict[int, Callable[[np.ndarray, int], None]]:
        components = self.components
        return {
            sender_state.ENDPOINT_RELEASED: lambda record, now_ns: (
                components.send_endpoints.on_released(int(record[1]))
            ),
            sender_state.PUBLICATION_RELEASED: lambda record, now_ns: (
                components.network.on_released(int(record[1]))
            ),
            sender_state.PUBLICATION_ERROR: lambda record, now_ns: (
                components.publication_errors.on_event(record)
            ),
            sender_state.GROUP_TAG_MALFORMED: lambda record, now_ns: (
                components.publication_errors.on_group_tag_malformed(record)
            ),
            sender_state.RESPONSE_SETUP: lambda record, now_ns: (
                components.responses.on_response_setup(record)
            ),
            sender_state.RESPONSE_CONNECTED: lambda record, now_ns: (
                components.responses.on_response_connected(record)
            ),
            sender_state.RESOLVE_DESTINATION: lambda record, now_ns: (
                components.send_endpoints.on_silent_destination(record)
            ),
            sender_state.GSO_REFUSED: lambda record, now_ns: (
                components.send_endpoints.on_gso_refused(record)
            ),
            sender_state.SEND_FAILED: lambda record, now_ns: self._report_send_failure(
                "sender", int(record[2])
            ),
        }

    def _make_receiver_events(self) -> dict[int, Callable[[np.ndarray, int], None]]:
        components = self.components
        return {
            receiver_state.CREATE_IMAGE: components.images.on_create,
            receiver_state.IMAGE_RELEASED: lambda record, now_ns: components.images.on_released(
                int(record[1])
            ),
            receiver_state.ENDPOINT_RELEASED: lambda record, now_ns: (
                components.receive_endpoints.on_released(int(record[1]))
            ),
            receiver_state.SESSION_LIMIT: lambda record, now_ns: components.images.on_session_limit(
                record
            ),
            receiver_state.SEND_FAILED: lambda record, now_ns: self._report_send_failure(
                "receiver", int(record[2])
            ),
        }

    def _on_events(self, now_ns: int) -> int:
        work_count = 0
        for queue, handlers in (
            (self._resources.sender.events, self._sender_events),
            (self._resources.receiver.events, self._receiver_events),
        ):
            began_ns = self._resources.clock.now_ns()
            for _ in range(EVENTS_PER_TURN_MAX):
                if not handoff.take(queue, self._record):
                    break
                # Pass a copy, since `_record` is reused for the next event.
                handlers[int(self._record[0])](self._record.copy(), now_ns)
                work_count += 1
                if self._resources.clock.now_ns() - began_ns >= EVENTS_DURATION_NS_MAX:
                    break
        return work_count

    def _report_send_failure(self, agent: str, error: int) -> None:
        if error == -errno.EFAULT:
            self._lost_pages.on_send_failure()
        self._resources.record_error(error, f"the {agent} failed to send")

    def _on_timer(self, now_ns: int, now_ms: int) -> None:
        ring_buffer.set_consumer_heartbeat_ms(self._resources.cnc.to_driver, now_ms)
        components = self.components
        self._lost_pages.check()
        for client_id in components.clients.expired(now_ms):
            self._waiting.discard(client_id)
            components.remove_client(client_id)
        self._command_unblocker.check(now_ns)
        components.network.on_timer(now_ns)
        components.ipc.on_timer(now_ns)
        if self._image_checks is None:
            self._image_checks = self._check_images(now_ns)

    def _check_images(self, now_ns: int) -> Iterator[None]:
        """Check every image. Yields after each step, so that the rest can be done later."""
        images = self.components.images
        for image in list(images.images):
            if image.state is State.ACTIVE:
                self._check_untethered(image, now_ns)
                yield
        yield from images.check_all(now_ns)

    def _continue_image_checks(self) -> int:
        if self._image_checks is None:
            return 0
        clock = self._resources.clock
        began_ns = clock.now_ns()
        for _ in self._image_checks:
            if clock.now_ns() - began_ns >= CHECKS_DURATION_NS_MAX:
                return 1
        self._image_checks = None
        return 1

    def _check_untethered(self, image: PublicationImage, now_ns: int) -> None:
        resources = self._resources
        readers = self.components.links.readers_of(image)
        if not readers:
            return
        _, highest, _ = resources.positions.bounds(image.record, resources.values)
        window = int(image.record["next_window"])
        limit = highest - window + window // 4
        self._untethered.check(readers, limit, image.untethered_timeouts, now_ns)

    def close(self) -> None:
        """Free all resources. Call this only after the agents have stopped."""
        self.components.close()
