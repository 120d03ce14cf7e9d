"""A small synthetic run folder: one stream, one datagram per frame, no violations.

    a --- SETUP, DATA, PAD, heartbeat ---> relay (drops selected frames) ---> b
      <-- SM, NAK ------------------------                                ---

Tests change one thing, before or after it is written, and assert on the judge's findings.
"""

import hashlib
import pickle
import socket
import struct
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.unit.harness.verdict.synthetic_checks import RELIABLE_CHECKS, UNRELIABLE_CHECKS
from tests.unit.harness.verdict.synthetic_log import ring_offset, synthetic_log
from tests.unit.harness.verdict.synthetic_report import loss_report
from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    CounterFacts,
    write_counters,
)
from windtunnel.harness.artifact.host.delivery import DELIVERY
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN
from windtunnel.harness.artifact.host.host_facts import CaptureFacts, SnmpFacts
from windtunnel.harness.artifact.host.log_index import LogFacts, write_log_index
from windtunnel.harness.artifact.host.pressure import UNKNOWN, Pressure
from windtunnel.harness.artifact.middlebox import decision, frame_class
from windtunnel.harness.artifact.middlebox.decision import DECISION
from windtunnel.harness.artifact.middlebox.ledger import FrameAccount, Ledger, LinkAccount
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.manifest import Manifest, Phase, ProcessExit
from windtunnel.harness.artifact.run.plan import MessagePlan, message_bytes, plan
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog, expected_log
from windtunnel.harness.scenario.resolved.case import (
    Case,
    CheckCase,
    HostCase,
    Payload,
    TrafficCase,
)
from windtunnel.harness.scenario.resolved.fault_case import FaultCase

SEED = 7
SESSION_ID = -4242
STREAM_ID = 1001
INITIAL_TERM_ID = -3
TERM_LENGTH = 65536
MTU = 1408
PORT = 24325
SENDER_PORT = 40000
TOTAL_BYTES = 200_000
ADDRESS = {"a": "10.64.0.10", "b": "10.64.1.10"}
STEP_NS = 1_000_000
WINDOW = 32768
PUBLICATION_WINDOW = TERM_LENGTH // 2
START_NS = 1_700_000_000_000_000_000
A_TO_B, B_TO_A = decision.LINKS
TRAFFIC = "one"
PACKETS_SENT = {"NAK": 5, "SM": 7, "HEARTBEAT": 9}
PACKETS_RECEIVED = {"NAK": 6, "SM": 8, "HEARTBEAT": 10}
"""Ids of the system counters, by name."""
NAK_TYPE_IDS = {"rcv-naks-sent": 20, "snd-naks-received": 19}
COUNTERS = {
    "a": {
        "snd-pos": (50, 2),
        "snd-naks-received": (51, 19),
        "snd-lmt": (52, 9),
        "pub-lmt": (53, 1),
        "snd-bpe": (54, 13),
        "pub-pos": (55, 12),
    },
    "b": {"rcv-hwm": (60, 3), "rcv-pos": (61, 5), "sub-pos": (62, 4), "rcv-naks-sent": (63, 20)},
}
"""Counter id and type id by name, by host."""


@dataclass
class Packet:
    """One captured UDP datagram."""

    time_ns: int
    source: str
    destination: str
    ports: tuple[int, int]
    payload: bytes
    kind: str

    def on_wire(self) -> bytes:
        return _on_wire(self.source, self.destination, self.ports, self.payload)


@cache
def _on_wire(source: str, destination: str, ports: tuple[int, int], payload: bytes) -> bytes:
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    addresses = b"".join(socket.inet_aton(ADDRESS[host]) for host in (source, destination))
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses
    return bytes(12) + b"\x08\x00" + ip + udp


@dataclass
class SyntheticRun:
    """The contents of the run folder; change them, then call `write`."""

    path: Path
    case: Case
    plan: MessagePlan
    log: ExpectedLog
    payload: np.ndarray
    manifest: Manifest
    packets: dict[str, list[Packet]] = field(default_factory=lambda: {"a": [], "b": []})
    links: dict[str, LinkAccount] = field(
        default_factory=lambda: {A_TO_B: LinkAccount(), B_TO_A: LinkAccount()}
    )
    decisions: list[tuple[Any, ...]] = field(default_factory=list)
    messages: list[tuple[int, bytes]] = field(default_factory=list)
    "Position after it, and bytes, in order of delivery."
    frames: list[tuple[int, bytes, int]] = field(default_factory=list)
    "Position, header and payload checksum, in order of reading."
    seen_ns: list[int] = field(default_factory=list)
    "When each frame was read. It may be shorter than `frames`."
    values: dict[str, int] = field(default_factory=dict)
    "Final values of counters by name; system counters by `<host>/<id>`."
    samples: dict[str, list[tuple[int, str, int]]] = field(
        default_factory=lambda: {"a": [], "b": []}
    )
    "Time, counter name, value."
    rcvbuf_errors: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})
    pressure: dict[str, list[list[int]]] = field(default_factory=dict)
    "Rows by host, as in the artifact."
    lost: list[int] = field(default_factory=list)
    "Lengths of the gaps in the loss report at b."
    logs: dict[str, np.ndarray] = field(default_factory=dict)
    "The publication's log at a, the image's log at b."
    now_ns: int = START_NS

    @property
    def folder(self) -> RunDir:
        return RunDir(self.path)

    @property
    def traffic(self) -> TrafficCase:
        return self.case.traffic[0]

    # ---- what happens ----

    def send(self, source: str, payload: bytes, kind: str, arrives: bool = True) -> None:
        """Send a datagram from a host; unless dropped, it arrives half a step later."""
        self.now_ns += STEP_NS
        destination = "b" if source == "a" else "a"
        ports = (SENDER_PORT, PORT) if source == "a" else (PORT, SENDER_PORT)
        packet = Packet(self.now_ns, source, destination, ports, payload, kind)
        first = kind == "HEARTBEAT" or payload not in [each.payload for each in self.packets["a"]]
        self._count(source, PACKETS_SENT.get(kind), 1)
        self._count(
            source, 0, len(payload) if kind in ("DATA", "PAD", "HEARTBEAT") and first else 0
        )
        self.packets[source].append(packet)
        account = self.links[A_TO_B if source == "a" else B_TO_A]
        frames = account.frames.setdefault(kind, FrameAccount())
        account.datagrams_in += 1
        frames.received += 1
        if not arrives:
            account.datagrams_dropped += 1
            frames.dropped += 1
            return
        self._count(destination, PACKETS_RECEIVED.get(kind), 1)
        self._count(destination, 1, len(payload) if destination == "b" else 0)
        account.datagrams_out += 1
        frames.sent += 1
        late = Packet(self.now_ns + STEP_NS // 2, source, destination, ports, payload, kind)
        self.packets[destination].append(late)

    def _count(self, host: str, counter_id: int | None, more: int) -> None:
        if counter_id is not None:
            name = f"{host}/{counter_id}"
            self.values[name] = self.values.get(name, 0) + more

    def sample(self, host: str, name: str, value: int) -> None:
        self.values[name] = value
        self.samples[host].append((self.now_ns + STEP_NS * 3 // 4, name, value))

    def frame_bytes(self, index: int) -> bytes:
        """Return the bytes of the frame on the wire."""
        row = self.log.frames[index]
        header = data_header(
            int(row["position"]),
            int(row["frame_length"]),
            int(row["flags"]),
            int(row["frame_type"]),
        )
        if row["frame_type"] == frame_class.PAD:
            return header
        body = self.frame_payload(index)
        return header + body + bytes(-len(body) % 32)

    def frame_payload(self, index: int) -> bytes:
        row = self.log.frames[index]
        if row["frame_type"] == frame_class.PAD:
            return b""
        length = int(row["frame_length"]) - 32
        return message_bytes(self.payload, int(row["payload_start"]), length).tobytes()

    def decide(
        self, index: int, action: int, rule: int = 0, attempt: int = 1, detail: int = 0
    ) -> None:
        row = self.log.frames[index]
        position = int(row["position"])
        span = (int(row["frame_length"]) + 31) & ~31
        term_id, term_offset = place(position)
        what = (self.now_ns, rule, action, 0, int(row["frame_type"]), int(row["flags"]), 0)
        where = (SESSION_ID, STREAM_ID, term_id, term_offset, span, position, attempt, 0)
        self.decisions.append((*what, *where, detail))

    def read_frame(self, index: int) -> None:
        """Let the subscriber read an expected frame."""
        row = self.log.frames[index]
        payload = self.frame_payload(index)
        checksum = zlib.crc32(payload) if payload else 0
        self.frames.append((int(row["position"]), self.frame_bytes(index)[:32], checksum))
        self.seen_ns.append(self.now_ns + STEP_NS // 2)

    def read_pad(self, first: int, last: int) -> None:
        """Let the subscriber read a filled gap over the frames from first to last."""
        start, end = int(self.log.frames["position"][first]), self.frame_end(last)
        self.frames.append((start, data_header(start, end - start, 0xC0, frame_class.PAD), 0))
        self.seen_ns.append(self.now_ns + STEP_NS // 2)

    def frame_end(self, index: int) -> int:
        row = self.log.frames[index]
        return int(row["position"]) + ((int(row["frame_length"]) + 31) & ~31)

    def lay_out_logs(self) -> None:
        """Fill both logs with the frames sent and seen."""
        sent = {
            int(position): self.frame_bytes(index)
            for index, position in enumerate(self.log.frames["position"])
        }
        seen = {
            position: header if header[6] == frame_class.PAD else sent[position]
            for position, header, _ in self.frames
        }
        for host, frames in (("a", sent), ("b", seen)):
            self.logs[host] = synthetic_log(
                sorted(frames.items()),
                end=self.log.end_position,
                term_length=TERM_LENGTH,
                initial_term_id=INITIAL_TERM_ID,
                session_id=SESSION_ID,
                stream_id=STREAM_ID,
            )

    def in_log(self, position: int) -> int:
        """Return the offset of a position in a log file."""
        return ring_offset(position, TERM_LENGTH)

    def rest(self) -> None:
        """Add pressure samples without overload for both hosts, four times a second."""
        quarter_ns = 250_000_000
        for host in ("a", "b"):
            self.pressure[host] = [
                [time_ns, time_ns // 10, time_ns // 100, UNKNOWN, 6_000_000, 0]
                for time_ns in range(START_NS - quarter_ns, self.now_ns + quarter_ns, quarter_ns)
            ]
        self.manifest.phases = [Phase("traffic", START_NS, self.now_ns)]
        self.manifest.host_facts = {"steal_ticks": 0, "ticks_per_second": 1000}

    # ---- what is written ----

    def write(self) -> Path:
        """Write the whole folder."""
        folder = self.folder
        folder.make()
        self.manifest.write(folder.manifest)
        self.case.write(folder.case)
        folder.scenario.write_text("made by hand\n")
        folder.payload.write_bytes(self.payload.tobytes())
        Ledger(self.links).write(folder.ledger)
        # The judge does not use `session` and `order`; `detail` may be omitted.
        rows = [(*each[:2], 0, *each[2:], 0, 0)[: len(DECISION)] for each in self.decisions]
        write_records(folder.decisions, np.array(rows, dtype=DECISION))
        for host in ("a", "b"):
            self.write_capture(host)
            self._write_counters(host)
            after = {"InErrors": 0, "RcvbufErrors": self.rcvbuf_errors[host]}
            SnmpFacts({"InErrors": 0, "RcvbufErrors": 0}, after).write(folder.host(host).snmp)
            rows = np.array(self.pressure[host], dtype=np.int64)
            Pressure(5_000_000, rows).write(folder.host(host).pressure)
        self._write_applications()
        self._write_logs()
        return self.path

    def write_capture(self, host: str) -> None:
        packets = sorted(self.packets[host], key=lambda packet: packet.time_ns)
        parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)]
        for packet in packets:
            data = packet.on_wire()
            seconds, fraction = divmod(packet.time_ns, 1_000_000_000)
            parts += [struct.pack("<IIII", seconds, fraction, len(data), len(data)), data]
        self.folder.capture(host).write_bytes(b"".join(parts))
        CaptureFacts(len(packets), 0).write(self.folder.capture_statistics(host))

    def _write_counters(self, host: str) -> None:
        files = self.folder.host(host)
        key = struct.pack("<qii", 6, SESSION_ID, STREAM_ID).ljust(112, b"\0").hex()
        facts = [
            CounterFacts(index, 0, index, -1, 0, f"system {index}", "", self.values.get(name, 0))
            for index in range(46)
            for name in (f"{host}/{index}",)
        ]
        facts += [
            CounterFacts(counter_id, type_id, 6, 1, 0, name, key, self.values[name])
            for name, (counter_id, type_id) in COUNTERS[host].items()
            if name in self.values
        ]
        write_counters(files.counters, facts)
        if host == "b" and self.case.traffic:
            names = SESSION_ID, STREAM_ID, self.traffic.receive
            source = f"{self.case.address('a')}:{SENDER_PORT}"
            files.loss_report.write_bytes(loss_report(self.lost, *names, source))
        rows = [
            (time_ns, *COUNTERS[host][name], 6, value)
            for time_ns, name, value in self.samples[host]
        ]
        write_records(files.counter_samples, np.array(sorted(rows), dtype=COUNTER_SAMPLE))

    def _write_logs(self) -> None:
        for host, folder, registration_id in (("a", "publications", 5), ("b", "images", 6)):
            files = self.folder.host(host)
            path = files.log_buffer(folder, registration_id)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.logs[host].tobytes())
            length = len(self.logs[host])
            write_log_index(files.log_index, [LogFacts(folder, registration_id, length, "")])

    def _write_applications(self) -> None:
        subscriber = self.folder.host("b").subscriber(TRAFFIC)
        index = [(position, len(data), SESSION_ID) for position, data in self.messages]
        write_records(subscriber.index, np.array(index, dtype=DELIVERY))
        subscriber.messages.write_bytes(b"".join(data for _, data in self.messages))
        seen = np.zeros(len(self.frames), dtype=FRAME_SEEN)
        if self.frames:
            positions, headers, checksums = zip(*self.frames, strict=True)
            seen["position"], seen["payload_crc32"] = positions, checksums
            seen["header"] = np.frombuffer(b"".join(headers), np.uint8).reshape(len(seen), -1)
        known = min(len(seen), len(self.seen_ns))
        seen["time_ns"][:known] = self.seen_ns[:known]
        write_records(subscriber.frames, seen)
        end = self.log.end_position
        count = len(self.messages)
        SubscriberFacts(
            SESSION_ID, STREAM_ID, 0, end, True, count, TOTAL_BYTES, START_NS, self.now_ns, None
        ).write(subscriber.document)
        PublisherFacts(
            session_id=SESSION_ID,
            stream_id=STREAM_ID,
            initial_term_id=INITIAL_TERM_ID,
            term_length=TERM_LENGTH,
            mtu=MTU,
            start_position=0,
            end_position=end,
            message_count=self.plan.count,
            back_pressure_count=0,
            admin_action_count=0,
            started_ns=START_NS,
            ended_ns=self.now_ns,
            error=None,
        ).write(self.folder.host("a").publisher(TRAFFIC).document)


def place(position: int) -> tuple[int, int]:
    """Return the term id and term offset of a position."""
    return INITIAL_TERM_ID + position // TERM_LENGTH, position % TERM_LENGTH


def data_header(position: int, frame_length: int, flags: int, frame_type: int) -> bytes:
    term_id, term_offset = place(position)
    stream = (SESSION_ID, STREAM_ID, term_id, 0)
    return struct.pack("<iBBHiiiiq", frame_length, 0, flags, frame_type, term_offset, *stream)


def setup_frame() -> bytes:
    facts = (0, SESSION_ID, STREAM_ID, INITIAL_TERM_ID, INITIAL_TERM_ID, TERM_LENGTH, MTU, 0)
    return struct.pack("<iBBHiiiiiiii", 40, 0, 0, 5, *facts)


def status_message(position: int) -> bytes:
    facts = (SESSION_ID, STREAM_ID, *place(position), WINDOW, 99)
    return struct.pack("<iBBHiiiiiq", 36, 0, 0, 3, *facts)


def nak(position: int, length: int) -> bytes:
    return struct.pack("<iBBHiiiii", 28, 0, 0, 2, SESSION_ID, STREAM_ID, *place(position), length)


def heartbeat(position: int, flags: int = 0xC0) -> bytes:
    return data_header(position, 0, flags, frame_class.DATA)


def make_case(payload: np.ndarray, reliable: bool, drops: bool) -> Case:
    """Return the case of the synthetic run."""
    fault = FaultCase(
        id="lose-data",
        links=(A_TO_B,),
        frame_types=("DATA",),
        action="drop",
        share_ppb=100_000_000,
        hold_ns=0,
    )
    traffic = TrafficCase(
        id=TRAFFIC,
        ordinal=0,
        stream_id=STREAM_ID,
        from_host="a",
        to_host="b",
        publication="exclusive",
        channel=f"aeron:udp?endpoint={ADDRESS['b']}:{PORT}",
        receive=f"aeron:udp?endpoint={ADDRESS['b']}:{PORT}",
        port=PORT,
        reliable=reliable,
        term_length=TERM_LENGTH,
        mtu=MTU,
        initial_term_id=INITIAL_TERM_ID,
        initial_position=0,
        receiver_window_bytes=None,
        total_bytes=TOTAL_BYTES,
        shortest_bytes=1,
        longest_bytes=8192,
    )
    checks = RELIABLE_CHECKS if reliable else UNRELIABLE_CHECKS
    return Case(
        name="made/by-hand",
        about="A run made by hand.",
        seed=SEED,
        fidelity="netns",
        hosts=(HostCase(name="a", address=ADDRESS["a"]), HostCase(name="b", address=ADDRESS["b"])),
        payload=Payload(
            path="payload.bin",
            sha256=hashlib.sha256(payload.tobytes()).hexdigest(),
            length_bytes=len(payload),
        ),
        traffic=(traffic,),
        faults=(fault,) if drops else (),
        expect=tuple(CheckCase(name=name, arguments={}) for name in checks),
        wall_ns=10_000_000_000,
    )


def make_run(path: Path, reliable: bool = True, drops: bool = True) -> SyntheticRun:
    """Return a correct run: every tenth DATA frame is dropped once, and recovered or filled."""
    run: SyntheticRun = pickle.loads(_pickled_run(reliable, drops))
    run.path = path
    return run


@cache
def _pickled_run(reliable: bool, drops: bool) -> bytes:
    """Return a correct run without a folder. Most tests start from a copy of it."""
    payload = np.random.default_rng(SEED).integers(0, 256, 5001, dtype=np.uint8)
    messages = plan(SEED, TRAFFIC, TOTAL_BYTES, 8192)
    manifest = Manifest("made", "made/by-hand", SEED, "netns", ["windtunnel", "run"], complete=True)
    manifest.processes = [
        ProcessExit("a/driver", "driver", -15, True, "hosts/a/driver.log", ""),
        ProcessExit("b/driver", "driver", -15, True, "hosts/b/driver.log", ""),
        ProcessExit("a/publisher-one", "publisher", 0, False, "hosts/a/publisher-one.log", ""),
        ProcessExit("b/subscriber-one", "subscriber", 0, False, "hosts/b/subscriber-one.log", ""),
    ]
    run = SyntheticRun(
        Path(),
        make_case(payload, reliable, drops),
        messages,
        expected_log(messages.lengths, MTU, TERM_LENGTH),
        payload,
        manifest,
    )
    _play(run, reliable, drops)
    return pickle.dumps(run)


def _play(run: SyntheticRun, reliable: bool, drops: bool) -> None:
    kinds = run.log.frames["frame_type"]
    data = np.flatnonzero(kinds == frame_class.DATA)
    dropped = set(data[5:-1:10].tolist()) if drops else set()
    for name in ("snd-pos", "snd-naks-received", "snd-lmt", "pub-lmt"):
        run.sample("a", name, 0)
    for name in ("rcv-hwm", "rcv-pos", "sub-pos", "rcv-naks-sent"):
        run.sample("b", name, 0)
    run.send("a", setup_frame(), "SETUP")
    _send_status_message(run, 0)
    run.sample("a", "pub-lmt", PUBLICATION_WINDOW)
    pending: int | None = None
    acknowledged = 0
    for index in range(len(kinds)):
        kind = frame_class.NAMES[int(kinds[index])]
        run.send("a", run.frame_bytes(index), kind, arrives=index not in dropped)
        run.sample("a", "snd-pos", run.frame_end(index))
        run.sample("a", "pub-lmt", run.frame_end(index) + PUBLICATION_WINDOW)
        if index in dropped:
            run.decide(index, decision.DROP)
            pending = index
            continue
        run.sample("b", "rcv-hwm", run.frame_end(index))
        if pending is not None:
            _repair(run, pending, reliable)
            pending = None
        run.read_frame(index)
        run.sample("b", "rcv-pos", run.frame_end(index))
        run.sample("b", "sub-pos", run.frame_end(index))
        if run.frame_end(index) - acknowledged > WINDOW // 4:
            acknowledged = run.frame_end(index)
            _send_status_message(run, acknowledged)
    for flags in (0xC0, 0xE0, 0xE0):
        run.send("a", heartbeat(run.log.end_position, flags), "HEARTBEAT")
    run.sample("a", "pub-lmt", run.log.end_position)
    _send_status_message(run, acknowledged)
    lost = set() if reliable else {int(run.log.frames["message"][each]) for each in dropped}
    for message in range(run.plan.count):
        if message not in lost:
            start, length = int(run.plan.starts[message]), int(run.plan.lengths[message])
            data_bytes = message_bytes(run.payload, start, length).tobytes()
            run.messages.append((int(run.log.message_ends[message]), data_bytes))
    run.lay_out_logs()
    run.rest()


def _send_status_message(run: SyntheticRun, position: int) -> None:
    run.send("b", status_message(position), "SM")
    run.sample("a", "snd-lmt", position + WINDOW)


def _repair(run: SyntheticRun, index: int, reliable: bool) -> None:
    """Recover a lost frame, or fill its gap, after a later frame has arrived."""
    run.lost.append(run.frame_end(index) - int(run.log.frames["position"][index]))
    if not reliable:
        run.read_pad(index, index)
        run.values["b/23"] = run.values.get("b/23", 0) + 1
        return
    start, span = int(run.log.frames["position"][index]), run.frame_end(index)
    span -= start
    run.send("b", nak(start, span), "NAK")
    run.sample("b", "rcv-naks-sent", run.values["rcv-naks-sent"] + 1)
    run.sample("a", "snd-naks-received", run.values["snd-naks-received"] + 1)
    kind = frame_class.NAMES[int(run.log.frames["frame_type"][index])]
    run.send("a", run.frame_bytes(index), kind)
    run.values["a/36"] = run.values.get("a/36", 0) + span
    run.values["a/11"] = run.values.get("a/11", 0) + 1
    run.read_frame(index)
