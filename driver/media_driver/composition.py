"""Builds a driver's resources from its settings: cnc.dat, system counters and agent states.

    Context --> cnc.dat, system counters --> sender, receiver, conductor states --> DriverResources

This module starts no agent. Source: spec 6.2, 8.1 and 10.2, Aeron 1.53.
"""

import contextlib
import os
import random
import select
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.channel.resolver import Resolver
from windtunnel.driver.cnc import cnc_file, counters
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.cnc_header import CncHeader
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.cnc.error_log import ErrorLog, RecordError
from windtunnel.driver.command.command_type import describe
from windtunnel.driver.media.channel_sockets import Sockets, SocketSettings
from windtunnel.driver.media.port_manager import PortManager
from windtunnel.driver.media_driver.agent import duty_cycle, system_counters
from windtunnel.driver.media_driver.agent.agent_proxy import AgentProxy
from windtunnel.driver.media_driver.agent.loss_interceptor import Losses, make_losses
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.conductor.client_proxy import ClientProxy
from windtunnel.driver.media_driver.conductor.conductor_state import ConductorState
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images.subscriber_positions import PositionPool
from windtunnel.driver.media_driver.conductor.stream_counters import SYSTEM, StreamCounters
from windtunnel.driver.media_driver.context import SHARED, SHARED_NETWORK, Context
from windtunnel.driver.media_driver.image.loss_report import LossReport
from windtunnel.driver.media_driver.name_resolution.suppliers import make_name_resolver
from windtunnel.driver.media_driver.receiver import receiver_state
from windtunnel.driver.media_driver.receiver.receiver_state import ReceiverState
from windtunnel.driver.media_driver.sender import sender_state
from windtunnel.driver.media_driver.sender.sender_state import SenderState


class AgentStates(NamedTuple):
    """The states of a driver's agents."""

    conductor: ConductorState
    sender: SenderState
    receiver: ReceiverState


MakeAgents = Callable[[Context, CncFile, LossReport, object], AgentStates]
"""Function that creates the states of a driver's agents, see `make_agents`."""


def create_cnc(context: Context, clock: Clock) -> CncFile:
    """Create cnc.dat. Clients ignore the file until it is marked ready."""
    return cnc_file.create(
        context.dir,
        CncHeader(
            to_driver_buffer_length=context.conductor_buffer_length,
            to_clients_buffer_length=context.clients_buffer_length,
            counters_metadata_buffer_length=4 * context.counters_buffer_length,
            counters_values_buffer_length=context.counters_buffer_length,
            error_log_buffer_length=context.error_buffer_length,
            client_liveness_timeout_ns=context.client_liveness_timeout_ns,
            start_timestamp_ms=clock.now_ms(),
            pid=os.getpid(),
            file_page_size=context.file_page_size,
        ),
        # Allocate all blocks now: a full disk would raise SIGBUS later.
        sparse=not context.perform_storage_checks,
    )


def socket_settings(context: Context) -> SocketSettings:
    """Return the driver's default socket settings."""
    return SocketSettings(
        sndbuf_length=context.socket_sndbuf_length,
        rcvbuf_length=context.socket_rcvbuf_length,
        multicast_ttl=context.socket_multicast_ttl,
        connects_unicast=context.driver_connect,
        gro_enabled=context.udp_offload,
        sender_ports=PortManager(*context.sender_wildcard_ports),
        receiver_ports=PortManager(*context.receiver_wildcard_ports),
    )


def make_resources(
    context: Context,
    clock: Clock,
    cnc: CncFile,
    loss_report: LossReport,
    sockets: Sockets,
    resolver: Resolver,
    links: object,
    rng: random.Random,
    create_agents: MakeAgents,
) -> tuple[DriverResources, CountersManager]:
    """Create the conductor's resources and the counters manager."""
    values = cnc.counters_values
    manager = _make_counters(context, clock, cnc, loss_report)
    record_error = _make_record_error(cnc, clock)
    conducting, sending, receiving = create_agents(context, cnc, loss_report, links)
    resources = DriverResources(
        context=context,
        clock=clock,
        cnc=cnc,
        values=values,
        counters=StreamCounters(manager),
        clients=ClientProxy(cnc.to_clients),
        record_error=record_error,
        sender=sending,
        receiver=receiving,
        conductor=conducting,
        sender_proxy=AgentProxy(sending.commands, values, system_counters.SENDER_PROXY_FAILS),
        receiver_proxy=AgentProxy(receiving.commands, values, system_counters.RECEIVER_PROXY_FAILS),
        positions=PositionPool(conducting.subscribers),
        names=make_name_resolver(context, resolver, manager, values, clock, record_error),
        sockets=sockets,
        system_buffers=sockets.system_buffers(),
        random=rng,
    )
    return resources, manager


def make_agents(
    context: Context, cnc: CncFile, loss_report: LossReport, links: object
) -> AgentStates:
    """Create the states of a driver's agents. `links` replaces the sockets, unless it is None."""
    sending = _make_sender(context, cnc.counters_values, links)
    receiving = _make_receiver(context, cnc.counters_values, links)
    conducting = _make_conductor(context, cnc, loss_report, sending, receiving)
    return AgentStates(conducting, sending, receiving)


def with_files(agents: AgentStates, cnc: CncFile, loss_report: LossReport) -> AgentStates:
    """Return states with the arrays of `agents`, except those that are sections of files."""
    values, report, ring = cnc.counters_values, loss_report.report, cnc.to_driver
    return AgentStates(
        agents.conductor._replace(counters=values, loss_report=report, ring=ring),
        agents.sender._replace(counters=values),
        agents.receiver._replace(counters=values),
    )


def _make_counters(
    context: Context, clock: Clock, cnc: CncFile, loss_report: LossReport
) -> CountersManager:
    """Create the counters manager, and allocate each system counter at its fixed id."""
    values = cnc.counters_values
    manager = CountersManager(
        cnc.counters_metadata,
        values,
        clock,
        context.counters_free_to_reuse_timeout_ns // NS_PER_MS,
    )
    manager.allocate_first(SYSTEM, system_counters.labels(context), owner_id=-1)
    for counter_id, value in (
        (system_counters.AERON_VERSION, system_counters.VERSION_NUMBER),
        (system_counters.CONTROL_PROTOCOL_VERSION, system_counters.CONTROL_PROTOCOL_NUMBER),
        (system_counters.BYTES_CURRENTLY_MAPPED, cnc.mapping.length + loss_report.length),
    ):
        counters.set_release(values, counter_id, value)
    return manager


def _make_record_error(cnc: CncFile, clock: Clock) -> RecordError:
    error_log, values = ErrorLog(cnc.error_log, clock), cnc.counters_values

    def record_error(code: int | None, text: str, kind: str = "") -> None:
        # This is the C driver's format: its error codes are negative, those of the system are
        # positive, and tools match its descriptions.
        if code is None:
            error_log.record(None, text, kind)
        elif code < 0:
            error_log.record(-code, f"{os.strerror(-code)}\n{text}", kind)
        else:
            error_log.record(-code, f"{describe(code)}\n{text}", kind)
        counters.increment(values, system_counters.ERRORS)

    return record_error


def _make_sender(context: Context, values: np.ndarray, links: object) -> SenderState:
    is_shared = context.threading_mode == SHARED_NETWORK
    return sender_state.make_sender_state(
        values,
        duty_cycle.make_duty_cycle(
            system_counters.SENDER_MAX_CYCLE_TIME,
            system_counters.SENDER_CYCLE_TIME_THRESHOLD_EXCEEDED,
            context.sender_cycle_threshold_ns,
        ),
        publications=context.publications_max,
        endpoints=context.publications_max,
        poll_ratio=context.send_to_status_poll_ratio,
        receive_slots=context.sender_io_vector_capacity or sender_state.RECEIVE_SLOTS,
        status_timeout_ns=context.status_message_timeout_ns,
        resolution_interval_ns=context.reresolution_check_interval_ns,
        idle_state=context.idle_of("shared_network" if is_shared else "sender"),
        links=links,
        gso_enabled=context.udp_offload,
        losses=_make_losses(context),
    )


def open_gates(*states: SenderState | ReceiverState) -> list[select.epoll]:
    """Let agents check with one system call whether any of their sockets has received something.

    The states must not outlive the returned objects. Without a descriptor for it, an agent polls
    each socket.
    """
    opened: list[select.epoll] = []
    with contextlib.suppress(OSError):
        for state in states:
            opened.append(select.epoll())
            state.gate[0].fd = opened[-1].fileno()
    return opened


def _make_losses(context: Context) -> Losses:
    """Create the loss interceptors of one agent. Agents do not share a random state."""
    return make_losses(
        context.incoming_interceptors,
        context.random_loss,
        context.fixed_loss,
        context.multi_gap_loss,
    )


def _make_receiver(context: Context, values: np.ndarray, links: object) -> ReceiverState:
    return receiver_state.make_receiver_state(
        values,
        duty_cycle.make_duty_cycle(
            system_counters.RECEIVER_MAX_CYCLE_TIME,
            system_counters.RECEIVER_CYCLE_TIME_THRESHOLD_EXCEEDED,
            context.receiver_cycle_threshold_ns,
        ),
        session_limit=context.stream_session_limit,
        liveness_timeout_ns=context.image_liveness_timeout_ns,
        receive_slots=context.receiver_io_vector_capacity or receiver_state.RECEIVE_SLOTS,
        idle_state=context.idle_of("receiver"),
        links=links,
        losses=_make_losses(context),
    )


def _make_conductor(
    context: Context,
    cnc: CncFile,
    loss_report: LossReport,
    sending: SenderState,
    receiving: ReceiverState,
) -> ConductorState:
    is_shared = context.threading_mode == SHARED
    return conductor_state.make_conductor_state(
        cnc.counters_values,
        loss_report.report,
        cnc.to_driver,
        sending,
        receiving,
        duty_cycle.make_duty_cycle(
            system_counters.CONDUCTOR_MAX_CYCLE_TIME,
            system_counters.CONDUCTOR_CYCLE_TIME_THRESHOLD_EXCEEDED,
            context.conductor_cycle_threshold_ns,
        ),
        limits=context.publications_max,
        idle_state=context.idle_of("shared" if is_shared else "conductor"),
    )
