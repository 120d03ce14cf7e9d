"""One stream between a sender and a receiver in one process, on a manual clock and a link in
memory.

    publisher -> log -> sender ==(`impair` forwards each datagram or not)==> receiver -> subscriber
                          ^                                                            |
                          +=======(status messages and NAKs, likewise)=================+

The conductor's part of the image and of the limits runs through its own kernels; only files and
commands are simulated.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from windtunnel.driver.base.arith import bits_to_shift
from windtunnel.driver.base.atomics import address_of
from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import compile_for
from windtunnel.driver.logbuffer import appender, descriptor, reader
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.logbuffer.parameters import LogParameters
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.conductor.images.subscriber_positions import PositionPool
from windtunnel.driver.media_driver.image import loss_report
from windtunnel.driver.media_driver.receiver import dispatcher, receiver, receiver_state
from windtunnel.driver.media_driver.sender import sender, sender_state

MS = 1_000_000
SESSION_ID, STREAM_ID, SLOT = 4711, 1001, 0
PUB_POS, PUB_LMT, SND_POS, SND_LMT, SND_BPE, NAKS_IN = 50, 51, 52, 53, 54, 55
HWM, RCV_POS, NAKS_OUT, SUB_POS = 56, 57, 58, 59
GAPS_OPEN, OLDEST_GAP, NAK_RETRIES, REPAIR_TIME, FILLED_EARLY = 80, 81, 82, 83, 84
TO_RECEIVER, TO_SENDER = 0, 1

Impair = Callable[[int, np.ndarray], list[np.ndarray]]


def deliver_all(direction: int, datagram: np.ndarray) -> list[np.ndarray]:
    """Deliver each datagram, as a link without impairments does."""
    return [datagram]


class StreamPair:
    """A sender and a receiver; `turn()` steps both once and advances the clock by `turn_ns`."""

    def __init__(
        self,
        folder: Path,
        *,
        term_length: int = 65_536,
        initial_term_id: int = 7,
        mtu: int = 1408,
        window: int = 131_072,
        reliable: bool = True,
        impair: Impair = deliver_all,
        turn_ns: int = 50_000,
        more_mailboxes: int = 0,
    ) -> None:
        """`more_mailboxes` are opened in addition to the sender's and the receiver's."""
        self.impair, self.turn_ns, self.now_ns = impair, turn_ns, 1_000 * MS
        self.values = np.zeros(128 * 100, np.uint8)
        self.links = link.make_links(2 + more_mailboxes)
        self.names = [np.zeros(28, np.uint8) for _ in range(2 + more_mailboxes)]
        for index, name in enumerate(self.names):
            length = write_name(name, SocketAddress("10.0.0.1", 20_001 + index))
            box = self.links.mailboxes[index]
            box.is_open, box.local_length = 1, length
            box.local[:] = self.names[index]
        sending = self.links.mailboxes[0]
        sending.peer_length = 16
        sending.peer[:] = self.names[1]
        cycles = [duty_cycle.make_duty_cycle(26 + 2 * i, 27 + 2 * i, 10**12) for i in range(3)]
        self.sender = sender_state.make_sender_state(self.values, cycles[1], links=self.links)
        self.receiver = receiver_state.make_receiver_state(self.values, cycles[2], links=self.links)
        self.conductor = conductor_state.make_conductor_state(
            self.values,
            np.zeros(4096, np.uint8),
            np.zeros(65_536 + 768, np.uint8),
            self.sender,
            self.receiver,
            cycles[0],
        )
        # Bound to the types of the states, since determining them takes longer than most turns.
        self.track = compile_for(conductor_state.track, (self.conductor, 0, 0))
        self.send = compile_for(sender.do_work, (self.sender, 0))
        self.receive = compile_for(receiver.do_work, (self.receiver, 0))
        self._datagram = np.zeros(65_536, np.uint8)
        self.pool = PositionPool(self.conductor.subscribers)
        self.window, self.reliable, self.folder = window, reliable, folder
        shape = {
            "session_id": SESSION_ID,
            "stream_id": STREAM_ID,
            "initial_term_id": initial_term_id,
            "term_length": term_length,
            "mtu_length": mtu,
        }
        self.log = LogBuffer.create(
            folder / "publication.logbuffer",
            LogParameters(type=descriptor.EXCLUSIVE_PUBLICATION, correlation_id=1, **shape),
        )
        self.image_log = LogBuffer.create(
            folder / "image.logbuffer",
            LogParameters(type=descriptor.IMAGE, correlation_id=2, **shape),
        )
        self.appender = appender.attach(self.log.log, self.log.meta_at)
        self._add_publication(mtu)
        self._add_subscription()
        self.has_image = False
        self.received: list[tuple[int, int, bytes]] = []
        self.wire: list[tuple[int, bytes]] = []

    def _fields(self, log: LogBuffer) -> dict[str, int]:
        return {
            "log_address": address_of(log.log),
            "log_length": log.length,
            "meta_at": log.meta_at,
            "term_length": log.term_length,
            "bits": int(bits_to_shift(log.term_length)),
            "initial_term_id": log.initial_term_id,
        }

    def _add_publication(self, mtu: int) -> None:
        endpoint = self.sender.endpoints[0]
        endpoint["fd"] = endpoint["control_fd"] = link.FIRST_FD
        fill(
            self.sender.publications[SLOT],
            **self._fields(self.log),
            endpoint=0,
            session_id=SESSION_ID,
            stream_id=STREAM_ID,
            mtu=mtu,
            signal_eos=1,
            max_messages_per_send=4,
            max_resend=1,
            connection_timeout_ns=5_000 * MS,
            retransmit_linger_ns=10 * MS,
            retransmit_window_multiple=16,
            snd_pos_id=SND_POS,
            snd_lmt_id=SND_LMT,
            snd_bpe_id=SND_BPE,
            naks_received_id=NAKS_IN,
        )
        fill(
            self.conductor.limits[0],
            **self._fields(self.log),
            slot=SLOT,
            pub_pos_id=PUB_POS,
            pub_lmt_id=PUB_LMT,
            snd_pos_id=SND_POS,
            first_subscriber=-1,
            window_length=self.log.term_length // 2,
        )
        self.conductor.agent[0]["limit_count"] = 1
        for operation in (sender_state.ADD_ENDPOINT, sender_state.ADD_PUBLICATION):
            self.send_command(self.sender.commands, operation, 0)

    def _add_subscription(self) -> None:
        self.receiver.endpoints[0]["fd"] = link.FIRST_FD - 1
        self.receiver.endpoints[0]["receiver_id"] = 99
        self.send_command(self.receiver.commands, receiver_state.ADD_ENDPOINT, 0)
        self.send_command(self.receiver.commands, receiver_state.ADD_INTEREST, 0, STREAM_ID, 0, 0)

    def send_command(self, queue: np.ndarray, *words: int) -> None:
        from windtunnel.driver.base import handoff

        record = handoff.make_record()
        record[: len(words)] = words
        assert handoff.put(queue, record)

    def _on_events(self) -> None:
        from windtunnel.driver.base import handoff

        record = handoff.make_record()
        while handoff.take(self.receiver.events, record):
            assert record[0] == receiver_state.CREATE_IMAGE
            assert record[dispatcher.SESSION_ID] == SESSION_ID
            fill(
                self.receiver.images[0],
                **self._fields(self.image_log),
                endpoint=0,
                session_id=SESSION_ID,
                stream_id=STREAM_ID,
                window_max=min(self.window, self.log.term_length // 2),
                next_window=min(self.window, self.log.term_length // 2),
                is_reliable=int(self.reliable),
                status_timeout_ns=200 * MS,
                nak_delay_ns=1_000 if self.reliable else 0,
                nak_retry_ns=100_000 if self.reliable else 0,
                hwm_id=HWM,
                rcv_pos_id=RCV_POS,
                naks_sent_id=NAKS_OUT,
                gaps_open_id=GAPS_OPEN,
                oldest_gap_id=OLDEST_GAP,
                nak_retries_id=NAK_RETRIES,
                repair_time_id=REPAIR_TIME,
                filled_early_id=FILLED_EARLY,
                first_subscriber=-1,
                is_rebuilding=1,
                over_run_threshold=self.log.term_length // 2,
                sm_window=min(self.window, self.log.term_length // 2),
                loss_entry_at=loss_report.FULL,
            )
            self.pool.add(self.receiver.images[0], SUB_POS)
            self.conductor.agent[0]["image_count"] = 1
            self.send_command(self.receiver.commands, receiver_state.ADD_IMAGE, 0)
            self.has_image = True

    def turn(self) -> None:
        """Step conductor, sender, link, receiver, link; then advance the clock."""
        self._on_events()
        self.track(self.conductor, self.now_ns, self.now_ns // MS)
        self.send(self.sender, self.now_ns)
        self._carry(0, TO_RECEIVER)
        self.receive(self.receiver, self.now_ns)
        self._carry(1, TO_SENDER)
        self.poll()
        self.now_ns += self.turn_ns

    def _carry(self, origin: int, direction: int) -> None:
        name, buf = np.zeros(28, np.uint8), self._datagram
        while True:
            length, _ = link.take(self.links, origin, name, buf, 0, buf.size)
            if length == link.NOTHING:
                return
            for datagram in self.impair(direction, buf[:length].copy()):
                self.wire.append((direction, bytes(datagram)))
                link.deliver(
                    self.links, 1 - origin, self.names[origin], 16, datagram, 0, datagram.size
                )

    def offer(self, message: bytes) -> int:
        """Offer once by the exclusive publication. Returns its code or position."""
        source = np.frombuffer(message, np.uint8).copy()
        limit = counters.get_acquire(self.values, PUB_LMT)
        return int(appender.offer(self.appender, self.log.log, limit, source, 0, source.size, 0))

    def poll(self) -> None:
        """Read the contiguous part of the image log: (position, flags or -1 for PAD, payload)."""
        room = reader.fragments(64)
        while self.has_image:
            position = self.value(SUB_POS)
            base = self.image_log.base(position)
            offset = position & (self.image_log.term_length - 1)
            count, end = reader.poll_frames(
                self.image_log.log,
                base,
                self.image_log.term_length,
                offset,
                self.image_log.term_length,
                room,
                64,
            )
            if count == 0:
                return
            for item in room[:count]:
                payload = bytes(self.image_log.log[item["at"] : item["at"] + item["length"]])
                is_pad = item["frame_type"] == 0
                at = position - offset + int(item["term_offset"])
                self.received.append(
                    (at, -1, b"") if is_pad else (at, int(item["frame_flags"]), payload)
                )
            counters.set_release(self.values, SUB_POS, position - offset + int(end))

    def value(self, counter_id: int) -> int:
        return int(counters.get(self.values, counter_id))

    def publish(self, messages: list[bytes], turns_max: int = 200_000) -> None:
        """Offer all messages, stepping on back pressure, until all are consumed."""
        pending = list(reversed(messages))
        for _ in range(turns_max):
            while pending and self.offer(pending[-1]) > 0:
                pending.pop()
            self.turn()
            produced = self.log.producer_position()
            if not pending and self.value(SUB_POS) == produced:
                # rcv-pos follows in the turns after the last frame became visible.
                for _ in range(3):
                    self.turn()
                return
        raise AssertionError(f"not done after {turns_max} turns: {len(pending)} messages left")


def fill(record: np.record, **values: int) -> None:
    """Set fields of one record."""
    for name, value in values.items():
        record[name] = value
