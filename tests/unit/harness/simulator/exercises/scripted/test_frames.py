"""Scripted frames have the fields of the protocol."""

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.harness.dissect.frames import layers, layout
from windtunnel.harness.simulator.exercises.scripted.frames import (
    END,
    FIRST_TERM_ID,
    FRAME,
    TERM,
    ScriptedPublisher,
    ScriptedReceiver,
    frame,
    kind_of,
    payload_at,
    value_of,
)

PEER = SocketAddress("10.0.0.2", 5000)


class Socket:
    """A socket that records sent datagrams, and returns those that a test adds."""

    def __init__(self):
        self.sent, self.inbox = [], []

    def send(self, datagram, peer):
        self.sent.append((datagram, peer))

    def receive(self):
        return self.inbox.pop(0) if self.inbox else None


def test_a_publisher_sends_data_at_a_position():
    socket = Socket()
    ScriptedPublisher(socket, PEER, 5, -6).data(2 * TERM + FRAME)
    ((datagram, peer),) = socket.sent
    assert peer == PEER
    shown = layers.AeronData(datagram)
    assert (shown.frame_length, shown.flags, shown.type) == (FRAME, 0xC0, 1)
    assert (shown.stream_id, shown.session_id) == (5, -6)
    assert (shown.term_id, shown.term_offset) == (FIRST_TERM_ID + 2, FRAME)
    assert datagram[32:] == payload_at(2 * TERM + FRAME)


def test_a_publisher_receives_feedback_for_its_session_alone():
    socket = Socket()
    own, other = (frame(layout.SM, session_id=session, stream_id=5) for session in (-6, 6))
    socket.inbox = [(other, PEER), (own, PEER)]
    publisher = ScriptedPublisher(socket, PEER, 5, -6)
    assert publisher.feedback() == [own]
    assert publisher.feedback() == []


def test_a_heartbeat_has_no_length():
    socket = Socket()
    ScriptedPublisher(socket, PEER, 5, 6).heartbeat(64, END)
    datagram = socket.sent[0][0]
    assert (len(datagram), value_of(datagram, layout.DATA, "frame_length")) == (32, 0)
    assert value_of(datagram, layout.DATA, "flags") == 0xE0


def test_a_receiver_answers_the_source_of_a_setup_with_its_terms():
    publisher, socket = Socket(), Socket()
    ScriptedPublisher(publisher, PEER, 5, 6).setup()
    receiver = ScriptedReceiver(socket)
    assert not receiver.poll()
    socket.inbox = [(publisher.sent[0][0], PEER)]
    assert receiver.poll()
    receiver.status(3 * TERM + 96, 1_000, flags=0x80)
    receiver.nak(TERM + 32, 64)
    status, nak = [each for each, peer in socket.sent if peer == PEER]
    shown = layers.AeronStatusMessage(status)
    assert (shown.session_id, shown.stream_id, shown.flags) == (6, 5, 0x80)
    assert (shown.consumption_term_id, shown.consumption_term_offset) == (FIRST_TERM_ID + 3, 96)
    assert shown.receiver_window == 1_000
    shown = layers.AeronNak(nak)
    assert (shown.term_id, shown.term_offset, shown.length) == (FIRST_TERM_ID + 1, 32, 64)


def test_a_receiver_knows_the_end_of_what_it_received():
    publisher, socket = Socket(), Socket()
    scripted = ScriptedPublisher(publisher, PEER, 5, 6)
    scripted.setup()
    scripted.data(TERM - FRAME)
    scripted.heartbeat(TERM, END)
    socket.inbox = [(datagram, PEER) for datagram, _ in publisher.sent]
    receiver = ScriptedReceiver(socket)
    assert receiver.end == 0
    assert not receiver.is_at_end_of_stream
    receiver.poll()
    assert (receiver.end, receiver.setup_count) == (TERM, 1)
    assert receiver.is_at_end_of_stream
    receiver.forget()
    assert (receiver.end, receiver.setup_count) == (0, 0)


def test_a_receiver_splits_datagrams_up_to_padding():
    publisher, socket = Socket(), Socket()
    scripted = ScriptedPublisher(publisher, PEER, 5, 6)
    scripted.setup()
    scripted.data(0)
    pad = frame(layout.PAD, frame_length=96, term_id=FIRST_TERM_ID, term_offset=FRAME)
    setup, data = (datagram for datagram, _ in publisher.sent)
    socket.inbox = [(setup, PEER), (data + pad, PEER)]
    receiver = ScriptedReceiver(socket)
    receiver.poll()
    assert receiver.frames == [data, pad]
    assert receiver.end == FRAME + 96


def test_fields_that_are_not_given_are_zero():
    made = frame(layout.RSP_SETUP, response_session_id=-1)
    assert made == bytes([20, 0, 0, 0, 0, 0, 11, 0]) + bytes(8) + b"\xff" * 4
    assert kind_of(made) == layout.RSP_SETUP.type_code
