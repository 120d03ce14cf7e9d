"""The conductor: carries out clients' commands, owns every resource, and watches who is still
alive.

A turn takes at most one command, then the agents' events, then the timers; between turns its kernel
rebuilds images and moves publication limits without entering Python. Source: spec 7.3 and 10.2,
Aeron 1.53.
"""

import os
from collections.abc import Callable

import numpy as np

from driver.base import handoff
from driver.base.errors import ConfigurationError, DriverError, StorageError
from driver.channel import admission, subscription_parameters, udp_channel, uri
from driver.channel.resolver import UnknownHostError
from driver.channel.subscription_parameters import SubscriptionDefaults
from driver.channel.udp_channel import ControlMode, UdpChannel
from driver.channel.uri import ChannelUri, InvalidChannelError
from driver.cnc import ring_buffer
from driver.cnc.counters_manager import CountersManager
from driver.command.client import ClientClose, ClientKeepalive
from driver.command.codec import Command, decode_command
from driver.command.command_type import ErrorCode
from driver.command.counter import AddCounter, AddStaticCounter, RemoveCounter
from driver.command.driver import TerminateDriver
from driver.command.payload import MalformedCommand
from driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    ExclusivePublicationReady,
    GetNextAvailableSessionId,
    NextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from driver.command.subscription import AddSubscription, RemoveSubscription, SubscriptionReady
from driver.media_driver import conductor_state, receiver_state, sender_state, shared_agents
from driver.media_driver.agent_proxy import SlotPool
from driver.media_driver.client_registry import ClientRegistry
from driver.media_driver.command_error import CommandError, NotYetError
from driver.media_driver.facilities import Facilities
from driver.media_driver.network_publications import NetworkPublications
from driver.media_driver.publication_images import PublicationImages
from driver.media_driver.receive_channel_endpoints import ReceiveChannelEndpoints
from driver.media_driver.send_channel_endpoints import SendChannelEndpoints
from driver.media_driver.session_ids import SessionIds
from driver.media_driver.subscriptions import Subscription, SubscriptionLinks
from driver.media_driver.user_counters import UserCounters


class Conductor:
    """One driver's conductor; only its own thread calls it."""

    def __init__(self, parts: Facilities, manager: CountersManager) -> None:
        self._parts = parts
        context = parts.context
        self._session_ids = SessionIds(
            parts.random, context.reserved_session_id_low, context.reserved_session_id_high
        )
        limit_slots = SlotPool(parts.conductor.limits.size, "publications")
        self._send_endpoints = SendChannelEndpoints(parts)
        self._receive_endpoints = ReceiveChannelEndpoints(parts)
        self._links = SubscriptionLinks(parts)
        self._publications = NetworkPublications(
            parts, self._send_endpoints, self._session_ids, limit_slots
        )
        self._images = PublicationImages(parts, self._receive_endpoints, self._links)
        self._clients = ClientRegistry(parts)
        self._user_counters = UserCounters(manager, parts.clients)
        self._scratch = ring_buffer.make_scratch(parts.cnc.to_driver)
        self._record = handoff.make_record()
        self._next_timer_ns = 0
        self._channel_count = 0
        self._subscription_defaults = SubscriptionDefaults(
            is_reliable=context.reliable_stream,
            is_tethered=context.tether_subscriptions,
            is_rejoin=context.rejoin_stream,
            is_sparse=context.term_buffer_sparse_file,
            initial_window_length=context.initial_window_length,
            socket_rcvbuf_length=context.socket_rcvbuf_length,
            system_rcvbuf_length=parts.system_buffers.rcvbuf_length,
            untethered_window_limit_timeout_ns=context.untethered_window_limit_timeout_ns,
            untethered_resting_timeout_ns=context.untethered_resting_timeout_ns,
        )
        self._actions: dict[type, Callable[..., None]] = {
            AddPublication: self._add_publication,
            AddExclusivePublication: self._add_publication,
            RemovePublication: self._remove_publication,
            AddSubscription: self._add_subscription,
            RemoveSubscription: self._remove_subscription,
            AddCounter: self._user_counters.add,
            AddStaticCounter: self._user_counters.add_static,
            RemoveCounter: self._user_counters.remove,
            GetNextAvailableSessionId: self._next_session_id,
            ClientKeepalive: lambda command: self._clients.on_keepalive(command.client_id),
            ClientClose: lambda command: self._clients.on_close(command.client_id),
            TerminateDriver: lambda command: None,
        }

    def do_work(self, now_ns: int) -> int:
        """Everything that needs Python, once. Returns an amount of work."""
        work_count = self._on_command() + self._on_events(now_ns)
        now_ms = self._parts.clock.now_ms()
        if self._parts.conductor.agent[0]["has_new_loss"]:
            self._images.report_new_losses(now_ms)
        if now_ns >= self._next_timer_ns:
            self._next_timer_ns = now_ns + self._parts.context.timer_interval_ns
            self._on_timer(now_ns, now_ms)
            work_count += 1
        return work_count

    def run(self, quantum_ns: int) -> None:
        """Let the kernel work for at most a quantum, then do what needs Python."""
        conductor_state.run(self._parts.conductor, self._deadline_ns(quantum_ns))
        self.do_work(self._parts.clock.now_ns())

    def run_all(self, quantum_ns: int) -> None:
        """The same with the sender and the receiver taking their turns in this thread."""
        parts = self._parts
        deadline_ns = self._deadline_ns(quantum_ns)
        shared_agents.run_all(parts.conductor, parts.sender, parts.receiver, deadline_ns)
        self.do_work(self._parts.clock.now_ns())

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
            return 0
        ring_buffer.advance(ring)
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

    def _resolve(self, channel_text: str) -> tuple[ChannelUri, UdpChannel]:
        parsed = uri.parse(channel_text)
        if parsed.is_ipc or parsed.is_spy:
            raise CommandError(
                f"channel '{channel_text}': ipc and spies are not supported yet",
                ErrorCode.NOT_SUPPORTED,
            )
        self._channel_count += 1
        channel = udp_channel.resolve(parsed, self._parts.resolver, self._channel_count)
        if channel.control_mode is not ControlMode.NONE:
            # Accepted without its destinations, such a channel would be silent for ever.
            raise CommandError(
                f"channel '{channel_text}': control-mode is not supported yet",
                ErrorCode.NOT_SUPPORTED,
            )
        return parsed, channel

    def _add_publication(self, command: AddPublication | AddExclusivePublication) -> None:
        self._clients.get_or_add(command.client_id)
        is_exclusive = isinstance(command, AddExclusivePublication)
        _, channel = self._resolve(command.channel)
        publication = self._publications.add(
            command.correlation_id,
            command.client_id,
            command.stream_id,
            channel,
            command.channel,
            is_exclusive=is_exclusive,
        )
        ready = ExclusivePublicationReady if is_exclusive else PublicationReady
        self._parts.clients.tell(
            ready(
                command.correlation_id,
                publication.registration_id,
                publication.session_id,
                publication.stream_id,
                publication.pub_lmt_id,
                publication.endpoint.status_counter_id,
                str(publication.log_path),
            )
        )

    def _remove_publication(self, command: RemovePublication) -> None:
        if self._publications.holders.get(command.registration_id) != command.client_id:
            raise CommandError(
                f"unknown publication {command.registration_id}", ErrorCode.UNKNOWN_PUBLICATION
            )
        self._publications.release(command.registration_id, self._parts.clock.now_ns())
        self._parts.clients.succeed(command.correlation_id)

    def _add_subscription(self, command: AddSubscription) -> None:
        client = self._clients.get_or_add(command.client_id)
        parsed, channel = self._resolve(command.channel)
        admission.check_subscription(channel)
        parameters = subscription_parameters.parse(parsed, self._subscription_defaults)
        for other in self._links.subscriptions.values():
            same = (
                other.endpoint and other.endpoint.channel.canonical_form == channel.canonical_form
            )
            if same and other.stream_id == command.stream_id:
                parameters.refuse_conflict(other.parameters)
        endpoint = self._receive_endpoints.get_or_open(channel, command.correlation_id)
        subscription = Subscription(
            command.correlation_id,
            client.client_id,
            command.stream_id,
            parsed,
            command.channel,
            parameters,
            endpoint,
        )
        self._links.subscriptions[command.correlation_id] = subscription
        self._receive_endpoints.add_interest(endpoint, command.stream_id, parameters.session_id)
        self._parts.clients.tell(
            SubscriptionReady(command.correlation_id, endpoint.status_counter_id)
        )
        self._images.join(subscription)

    def _remove_subscription(self, command: RemoveSubscription) -> None:
        subscription = self._links.subscriptions.get(command.registration_id)
        if subscription is None or subscription.client_id != command.client_id:
            raise CommandError(
                f"unknown subscription {command.registration_id}", ErrorCode.UNKNOWN_SUBSCRIPTION
            )
        self._drop_subscription(subscription)
        self._parts.clients.succeed(command.correlation_id)

    def _drop_subscription(self, subscription: Subscription) -> None:
        self._links.unlink_subscription(subscription)
        endpoint = subscription.endpoint
        assert endpoint is not None
        self._receive_endpoints.remove_interest(
            endpoint, subscription.stream_id, subscription.parameters.session_id
        )
        self._receive_endpoints.release(endpoint)

    def _next_session_id(self, command: GetNextAvailableSessionId) -> None:
        in_use = {
            item.session_id
            for item in self._publications.publications
            if item.stream_id == command.stream_id
        }
        self._parts.clients.tell(
            NextAvailableSessionId(command.correlation_id, self._session_ids.next(in_use))
        )

    def _on_events(self, now_ns: int) -> int:
        work_count = 0
        while handoff.take(self._parts.sender.events, self._record):
            self._on_sender_event(self._record)
            work_count += 1
        while handoff.take(self._parts.receiver.events, self._record):
            self._on_receiver_event(self._record.copy(), now_ns)
            work_count += 1
        return work_count

    def _on_sender_event(self, record: np.ndarray) -> None:
        operation, slot = int(record[0]), int(record[1])
        if operation == sender_state.ENDPOINT_RELEASED:
            self._send_endpoints.on_released(slot)
        elif operation == sender_state.PUBLICATION_RELEASED:
            self._publications.on_released(slot)
        elif operation == sender_state.SEND_FAILED:
            self._report_send_failure("sender", int(record[2]))

    def _on_receiver_event(self, record: np.ndarray, now_ns: int) -> None:
        operation, slot = int(record[0]), int(record[1])
        if operation == receiver_state.CREATE_IMAGE:
            self._images.on_create(record, now_ns)
        elif operation == receiver_state.IMAGE_RELEASED:
            self._images.on_released(slot)
        elif operation == receiver_state.ENDPOINT_RELEASED:
            self._receive_endpoints.on_released(slot)
        elif operation == receiver_state.SEND_FAILED:
            self._report_send_failure("receiver", int(record[2]))

    def _report_send_failure(self, agent: str, error: int) -> None:
        self._parts.record_error(
            ErrorCode.GENERIC_ERROR, f"the {agent} failed to send: {os.strerror(-error)}"
        )

    def _on_timer(self, now_ns: int, now_ms: int) -> None:
        ring_buffer.set_consumer_heartbeat_ms(self._parts.cnc.to_driver, now_ms)
        for client_id in self._clients.take_dead(now_ms):
            self._forget_client(client_id)
        self._publications.on_timer(now_ns)
        self._images.on_timer(now_ns)

    def _forget_client(self, client_id: int) -> None:
        holders = self._publications.holders
        for holder_id in [key for key, owner in holders.items() if owner == client_id]:
            self._publications.release(holder_id, self._parts.clock.now_ns())
        for subscription in list(self._links.subscriptions.values()):
            if subscription.client_id == client_id:
                self._drop_subscription(subscription)
        self._user_counters.remove_all_of(client_id)

    def close(self) -> None:
        """Free all that the driver holds; only after the agents have stopped."""
        self._send_endpoints.close()
        self._receive_endpoints.close()
        self._publications.close()
        self._images.close()


def _code_of(error: DriverError) -> int:
    if isinstance(error, CommandError):
        return int(error.code)
    if isinstance(error, InvalidChannelError):
        return int(ErrorCode.INVALID_CHANNEL)
    if isinstance(error, UnknownHostError):
        return int(ErrorCode.UNKNOWN_HOST)
    if isinstance(error, StorageError):
        return int(ErrorCode.STORAGE_SPACE)
    if isinstance(error, ConfigurationError):
        return int(ErrorCode.GENERIC_ERROR)
    return int(ErrorCode.GENERIC_ERROR)
