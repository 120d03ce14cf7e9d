"""The receiver's duty cycle, which executes commands, polls sockets and sends feedback.

A duty cycle executes one command, polls each socket, then sends the feedback of each image. `run`
repeats duty cycles in compiled code, which enters Python only to start and to stop. `do_work` is
one duty cycle with the time as an argument, for tests and the simulator. Source: spec 3.1 and 3.6,
Aeron 1.53.
"""

from windtunnel.driver.base import idle, system
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import inlined_kernel, kernel
from windtunnel.driver.media import socket_gate, transport
from windtunnel.driver.media_driver.agent import duty_cycle, loss_interceptor, system_counters
from windtunnel.driver.media_driver.receiver import (
    dispatcher,
    image_feedback,
    receive_transport,
    receiver_commands,
    segment_run,
    session_state,
)
from windtunnel.driver.wire import frame_type, header


@inlined_kernel
def do_work(state, now_ns):
    """Run one duty cycle of the receiver.

    Units:   now_ns is monotonic
    Returns: the work count, or 0 if there was no work
    """
    agent = state.agent[0]
    work_count = receiver_commands.on_command(state, now_ns)
    if not socket_gate.is_quiet(state.gate):
        received = 0
        for index in range(agent.endpoint_count):
            received += _poll(state, state.polled[index], now_ns)
        socket_gate.after_poll(state.gate, received)
        work_count += received
    for index in range(agent.image_count):
        work_count += image_feedback.send_feedback(state, state.active[index], now_ns)
    if agent.pending_count > 0:
        work_count += session_state.expire_pending(state, now_ns)
    if agent.eliciting_count > 0:
        work_count += receive_transport.repeat_elicitations(state, now_ns)
    return work_count


@kernel
def run(state, quantum_ns):
    """Run duty cycles for a limited time, idling between them, then return to Python.

    Memory:  `is_stopping` is set by another thread, which waits for this one to end; it is not
             ordered with anything
    """
    began_ns = system.monotonic_ns()
    now_ns = began_ns
    while now_ns - began_ns < quantum_ns and state.agent[0].is_stopping == 0:
        duty_cycle.measure(state.cycle, state.counters, now_ns)
        work_count = do_work(state, now_ns)
        socket_gate.park(state.gate, idle.park_ns(state.idle, work_count))
        now_ns = system.monotonic_ns()


@kernel
def _poll(state, slot, now_ns):
    endpoint = state.endpoints[slot]
    count = transport.receive(endpoint.fd, state.inbox, state.links)
    if count > 0 and endpoint.is_stamping:
        # Read the epoch clock only if receive timestamps are enabled.
        state.agent[0].receive_time_ns = system.epoch_ns()
    received_bytes = 0
    for index in range(count):
        received_bytes += transport.incoming_length(state.inbox, index)
        on_message(state, slot, index, now_ns)
    if received_bytes > 0:
        counters.add(state.counters, system_counters.BYTES_RECEIVED, received_bytes)
    return max(count, 0)


@kernel
def on_message(state, slot, index, now_ns):
    """Process a received message: one datagram, or a GRO packet of several."""
    at = transport.incoming_at(state.inbox, index)
    end = at + transport.incoming_length(state.inbox, index)
    segment_length = transport.segment_length(state.inbox, index)
    if segment_length < end - at and state.losses.rules.size == 0:
        at = segment_run.insert(state, slot, at, end, segment_length, index, now_ns)
        if at == end:
            return
    # An empty datagram is processed too and counts as invalid.
    while True:
        _on_datagram(state, slot, index, at, min(segment_length, end - at), now_ns)
        at += segment_length
        if at >= end:
            break


@kernel
def _on_datagram(state, slot, index, at, length, now_ns):
    frames = state.inbox.slots
    if state.losses.rules.size > 0 and loss_interceptor.is_lost(state.losses, frames, at, length):
        return
    if transport.is_truncated(state.inbox, index) or header.check(frames, at, length) < 0:
        counters.add_atomic(state.counters, system_counters.INVALID_PACKETS, 1)
        return
    kind = header.frame_type(frames, at)
    if kind == frame_type.DATA or kind == frame_type.PAD:
        dispatcher.on_data(state, slot, at, length, index, now_ns)
    elif kind == frame_type.SETUP:
        dispatcher.on_setup(state, slot, at, length, index, now_ns)
    elif kind == frame_type.RTTM:
        dispatcher.on_rtt_measurement(state, slot, at, index, now_ns)
