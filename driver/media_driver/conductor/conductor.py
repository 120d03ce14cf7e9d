"""The conductor: carries out clients' commands, owns every resource, and watches who is still
alive.

A turn takes at most one command, then the agents' events, then the timers; between turns its kernel
rebuilds images and moves publication limits without entering Python. Source: spec 7.3 and 10.2,
Aeron 1.53.
"""

import os
import traceback
from collections.abc import Callable

import numpy as np

from windtunnel.driver.base import handoff, idle
from windtunnel.driver.base.errors import DriverError, StorageError
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.uri import InvalidChannelError
from windtunnel.driver.cnc import ring_buffer
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.command.codec import Command, decode_command
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.payload import MalformedCommand
from windtunnel.driver.media_driver.command_error import CommandError, NotYetError
from windtunnel.driver.media_driver.conductor import conductor_state, shared_agents
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images.conductor_image import PublicationImage, State
from windtunnel.driver.media_driver.conductor.images.untethered import UntetheredReaders
from windtunnel.driver.media_driver.conductor.resources import Resources
from windtunnel.driver.media_driver.conductor.unblocking import BlockedCommands
from windtunnel.driver.media_driver.receiver import receiver_state
from windtunnel.driver.media_driver.sender import sender_state

EVENTS_PER_TURN_MAX = 64
"""From each agent. Frames of the network bring events about; however many come, commands and timers
have their turn."""


class Conductor:
    """One driver's conductor; only its own thread calls it."""

    def __init__(
        self,
        parts: DriverResources,
        manager: CountersManager,
        on_terminate: Callable[[], None] = lambda: None,
    ) -> None:
        self._parts = parts
        self.resources = Resources(parts, manager, on_terminate)
        self._actions = self.resources.actions()
        self._untethered = UntetheredReaders(parts, self.resources.links)
        self._blocked_commands = BlockedCommands(parts)
        self._scratch = ring_buffer.make_scratch(parts.cnc.to_driver)
        self._record = handoff.make_record()
        self._next_timer_ns = 0
        self._is_command_waiting = False
        self._sender_events = self._make_sender_events()
        self._receiver_events = self._make_receiver_events()

    def do_work(self, now_ns: int) -> int:
        """Everything that needs Python, once. Returns an amount of work."""
        work_count = self._on_command() + self._on_events(now_ns)
        work_count += self._parts.names.do_work(now_ns)
        work_count += self.resources.reresolution.do_work(now_ns)
        now_ms = self._parts.clock.now_ms()
        if self._parts.conductor.agent[0]["has_new_loss"]:
            self.resources.images.report_new_losses(now_ms)
        if now_ns >= self._next_timer_ns:
            self._next_timer_ns = now_ns + self._parts.context.timer_interval_ns
            self._on_timer(now_ns, now_ms)
            work_count += 1
        return work_count

    def run(self, quantum_ns: int) -> None:
        """Let the kernel work for at most a quantum, then do what needs Python."""
        conductor_state.run(self._parts.conductor, self._deadline_ns(quantum_ns))
        self._do_work_and_idle()

    def run_all(self, quantum_ns: int) -> None:
        """The same with the sender and the receiver taking their turns in this thread."""
        parts = self._parts
        deadline_ns = self._deadline_ns(quantum_ns)
        shared_agents.run_all(parts.conductor, parts.sender, parts.receiver, deadline_ns)
        self._do_work_and_idle()

    def _do_work_and_idle(self) -> None:
        work_count = self.do_work(self._parts.clock.now_ns())
        if self._is_command_waiting:
            # The kernel comes back at once while a command is in the ring.
            idle.after_turn(self._parts.conductor.idle, work_count)

    def _deadline_ns(self, quantum_ns: int) -> int:
        return min(self._parts.clock.now_ns() + quantum_ns, self._next_timer_ns)

    def track(self, now_ns: int) -> int:
        """The kernel's part of one turn, for callers that keep the time themselves."""
        now_ms = self._parts.clock.now_ms()
        return int(conductor_state.track(self._parts.conductor, now_ns, now_ms))

    def _on_command(self) -> int:
        ring = self._parts.cnc.to_driver
        type_id, length = ring_buffer.peek(ring, self._scratch)
        if type_id == ring_buffer.NO_MESSAGE:
            return 0
        if type_id == ring_buffer.CORRUPT:
            self._parts.record_error(
                ErrorCode.MALFORMED_COMMAND, f"{length} bytes of the command ring were no record"
            )
            return 1
        try:
            command = decode_command(type_id, self._scratch[:length])
        except MalformedCommand as error:
            # As the C driver: without a trustworthy correlation id there is nobody to answer.
            self._parts.record_error(ErrorCode.MALFORMED_COMMAND, str(error))
            ring_buffer.advance(ring)
            return 1
        try:
            self._carry_out(command)
        except NotYetError:
            self._is_command_waiting = True
            return 0
        self._is_command_waiting = False
        ring_buffer.advance(ring)
        self._parts.names.on_command_end()
        return 1

    def _carry_out(self, command: Command) -> None:
        action = self._actions.get(type(command))
        try:
            if action is None:
                raise CommandError(
                    f"{type(command).__name__} is not supported", ErrorCode.NOT_SUPPORTED
                )
            action(command)
        except NotYetError:
            raise
        except DriverError as error:
            self._parts.record_error(_code_of(error), str(error))
            self._parts.clients.fail(command.correlation_id, _code_of(error), str(error))
        except OSError as error:
            self._parts.record_error(ErrorCode.GENERIC_ERROR, str(error))
            self._parts.clients.fail(command.correlation_id, ErrorCode.GENERIC_ERROR, str(error))
        except Exception as error:
            # A defect of ours, and one client's command shall not end the driver for all. The entry
            # says where it is; its text comes first, since a long entry is cut.
            text = f"{type(error).__name__}: {error}"
            self._parts.record_error(ErrorCode.GENERIC_ERROR, f"{text}\n{traceback.format_exc()}")
            self._parts.clients.fail(command.correlation_id, ErrorCode.GENERIC_ERROR, text)

    def _make_sender_events(self) -> dict[int, Callable[[np.ndarray, int], None]]:
        resources = self.resources
        return {
            sender_state.ENDPOINT_RELEASED: lambda record, now_ns: (
                resources.send_endpoints.on_released(int(record[1]))
            ),
            sender_state.PUBLICATION_RELEASED: lambda record, now_ns: resources.network.on_released(
                int(record[1])
            ),
            sender_state.PUBLICATION_ERROR: lambda record, now_ns: (
                resources.publication_errors.on_event(record)
            ),
            sender_state.GROUP_TAG_MALFORMED: lambda record, now_ns: (
                resources.publication_errors.on_group_tag_malformed(record)
            ),
            sender_state.RESPONSE_SETUP: lambda record, now_ns: (
                resources.responses.on_response_setup(record)
            ),
            sender_state.RESPONSE_CONNECTED: lambda record, now_ns: (
                resources.responses.on_response_connected(record)
            ),
            sender_state.RESOLVE_DESTINATION: lambda record, now_ns: (
                resources.send_endpoints.on_silent_destination(record)
            ),
            sender_state.SEND_FAILED: lambda record, now_ns: self._report_send_failure(
                "sender", int(record[2])
            ),
        }

    def _make_receiver_events(self) -> dict[int, Callable[[np.ndarray, int], None]]:
        resources = self.resources
        return {
            receiver_state.CREATE_IMAGE: resources.images.on_create,
            receiver_state.IMAGE_RELEASED: lambda record, now_ns: resources.images.on_released(
                int(record[1])
            ),
            receiver_state.ENDPOINT_RELEASED: lambda record, now_ns: (
                resources.receive_endpoints.on_released(int(record[1]))
            ),
            receiver_state.SESSION_LIMIT: lambda record, now_ns: resources.images.on_session_limit(
                record
            ),
            receiver_state.SEND_FAILED: lambda record, now_ns: self._report_send_failure(
                "receiver", int(record[2])
            ),
        }

    def _on_events(self, now_ns: int) -> int:
        work_count = 0
        for queue, reactions in (
            (self._parts.sender.events, self._sender_events),
            (self._parts.receiver.events, self._receiver_events),
        ):
            for _ in range(EVENTS_PER_TURN_MAX):
                if not handoff.take(queue, self._record):
                    break
                # A copy, since a reaction may take its time and the queue goes on meanwhile.
                reactions[int(self._record[0])](self._record.copy(), now_ns)
                work_count += 1
        return work_count

    def _report_send_failure(self, agent: str, error: int) -> None:
        self._parts.record_error(
            ErrorCode.GENERIC_ERROR, f"the {agent} failed to send: {os.strerror(-error)}"
        )

    def _on_timer(self, now_ns: int, now_ms: int) -> None:
        ring_buffer.set_consumer_heartbeat_ms(self._parts.cnc.to_driver, now_ms)
        resources = self.resources
        for client_id in resources.clients.dead(now_ms):
            resources.forget_client(client_id)
        self._blocked_commands.check(now_ns)
        resources.network.on_timer(now_ns)
        resources.ipc.on_timer(now_ns)
        for image in resources.images.images:
            if image.state is State.ACTIVE:
                self._check_untethered(image, now_ns)
        resources.images.on_timer(now_ns)

    def _check_untethered(self, image: PublicationImage, now_ns: int) -> None:
        parts = self._parts
        readers = self.resources.links.readers_of(image)
        if not readers:
            return
        _, highest, _ = parts.positions.bounds(image.record, parts.values)
        window = int(image.record["next_window"])
        limit = highest - window + window // 4
        self._untethered.check(readers, limit, image.untethered_timeouts, now_ns)

    def close(self) -> None:
        """Free all that the driver holds; only after the agents have stopped."""
        self.resources.close()


def _code_of(error: DriverError) -> int:
    if isinstance(error, CommandError):
        return int(error.code)
    if isinstance(error, InvalidChannelError):
        return int(ErrorCode.INVALID_CHANNEL)
    if isinstance(error, UnknownHostError):
        return int(ErrorCode.UNKNOWN_HOST)
    if isinstance(error, StorageError):
        return int(ErrorCode.STORAGE_SPACE)
    return int(ErrorCode.GENERIC_ERROR)
