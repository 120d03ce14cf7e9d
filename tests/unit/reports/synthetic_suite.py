"""A small synthetic suite folder like that of a real run, made without a network.

    frame i is sent at t_i; some are lost; a lost one is requested after 2 ms and retransmitted

Everything is a function of the arguments. Only what a report reads is written.
"""

import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.host.counter_sample import (
    COUNTER_SAMPLE,
    CounterFacts,
    write_counters,
)
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import DATA, NAK, PAD, SETUP, SM
from windtunnel.harness.artifact.middlebox.ledger import FrameAccount, Ledger, LinkAccount
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.manifest import Manifest, Phase, ProcessExit
from windtunnel.harness.artifact.run.suite import Suite, SuiteRun
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.case import Case, Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

EPOCH_NS = 1_700_000_000_000_000_000
MS = 1_000_000
FRAME_BYTES = 1408
FLIGHT_NS = 300_000
NAK_DELAY_NS = 2 * MS
RESEND_DELAY_NS = MS
SAMPLE_NS = 5 * MS
WINDOW_BYTES = 128 * 1024
SESSION_ID = 0x5E55
ADDRESSES = {"a": "10.64.0.3", "b": "10.64.1.3"}
SCENARIO = Path(__file__).resolve().parents[3] / "scenarios" / "loss" / "reliable-2pct.yaml"


@dataclass(frozen=True)
class RunParameters:
    """Size, losses and seed of a synthetic run."""

    frame_count: int = 1500
    loss: float = 0.02
    reliable: bool = True
    seed: int = 7
    frames_per_ms: float = 5.0


@dataclass(frozen=True)
class Timeline:
    """When each frame of a stream was sent and arrived, and which frames were lost."""

    position: np.ndarray
    length: np.ndarray
    is_pad: np.ndarray
    sent_ns: np.ndarray
    lost: np.ndarray
    arrived_ns: np.ndarray
    term_length: int
    initial_term_id: int

    def term_id(self, position: np.ndarray) -> np.ndarray:
        wide = self.initial_term_id + position // self.term_length
        return ((wide + 2**31) % 2**32 - 2**31).astype(np.int64)


def timeline(made: RunParameters, term_length: int, initial_term_id: int) -> Timeline:
    """Lay frames into terms, lose some, repair them."""
    random = np.random.Generator(np.random.PCG64(made.seed))
    position, length, is_pad = _frames(made.frame_count, term_length)
    step_ns = MS / made.frames_per_ms
    pauses = random.exponential(step_ns, len(position))
    pauses[random.random(len(position)) < 0.003] += 6 * MS
    sent_ns = EPOCH_NS + 40 * MS + np.cumsum(pauses).astype(np.int64)
    lost = (random.random(len(position)) < made.loss) & ~is_pad
    repaired_ns = sent_ns + FLIGHT_NS + NAK_DELAY_NS + (RESEND_DELAY_NS if made.reliable else 0)
    arrived_ns = np.where(lost, repaired_ns, sent_ns + FLIGHT_NS)
    return Timeline(
        position, length, is_pad, sent_ns, lost, arrived_ns, term_length, initial_term_id
    )


def _frames(count: int, term_length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, at = [], 0
    while len(rows) < count:
        left = term_length - at % term_length
        is_pad = left < FRAME_BYTES
        rows.append((at, left if is_pad else FRAME_BYTES, is_pad))
        at += rows[-1][1]
    position, length, is_pad = (np.array(column) for column in zip(*rows, strict=True))
    return position.astype(np.int64), length.astype(np.int64), is_pad


def make_suite(
    folder: Path, made: RunParameters = RunParameters(), outcomes: tuple[str, ...] = ("PASS",)
) -> SuiteDir:
    """Write a suite with one run per outcome; the scenario follows from the index of the run."""
    suite = SuiteDir(folder)
    rows = []
    for index, outcome in enumerate(outcomes):
        name = ("loss/reliable-2pct", "reorder/reliable-swap-and-hold", "loss/unreliable-2pct")[
            index % 3
        ]
        seed = made.seed + index // 3
        run = suite.run(name, seed)
        make_run(run, name, replace(made, seed=seed, reliable="unreliable" not in name), outcome)
        begin = EPOCH_NS + index * 10_000 * MS
        reason = "all checks hold" if outcome == "PASS" else "message 4711 differs at byte 3"
        rows.append(SuiteRun(run.path.name, name, seed, outcome, reason, begin, begin + 8_400 * MS))
    command = ["windtunnel", "run"]
    end = rows[-1].ended_ns
    exit_code = 0 if set(outcomes) <= {"PASS"} else 1
    Suite(folder.name, "netns", command, EPOCH_NS, end, exit_code, rows).write(suite.document)
    return suite


def make_case(name: str, made: RunParameters) -> Case:
    """Return the case of the synthetic runs: two streams from a to b."""
    case = resolve(
        load_scenario(SCENARIO),
        seed=made.seed,
        fidelity="netns",
        addresses=ADDRESSES,
        payload=Payload(path="payload.bin", sha256="00" * 32, length_bytes=1 << 20),
    )
    traffic = tuple(each.model_copy(update={"reliable": made.reliable}) for each in case.traffic)
    return case.model_copy(update={"name": name, "traffic": traffic})


def make_run(run: RunDir, name: str, made: RunParameters, outcome: str) -> None:
    """Write one run folder."""
    run.make()
    case = make_case(name, made)
    case.write(run.case)
    run.repro.write_text(f"windtunnel run {name} --seed {made.seed}\n")
    lines = [
        timeline(
            replace(made, seed=made.seed * 10 + each.ordinal),
            each.term_length,
            each.initial_term_id or 0,
        )
        for each in case.traffic
    ]
    streams = list(zip(case.traffic, lines, strict=True))
    write_records(run.decisions, np.concatenate([_decisions(t.stream_id, x) for t, x in streams]))
    sent = [packet for t, x in streams for packet in _data_packets(t.stream_id, t.port, x, made)]
    naks = [packet for t, x in streams for packet in _nak_packets(t.stream_id, t.port, x, made)]
    write_pcap(run.capture("a"), sent)
    write_pcap(run.capture("b"), naks)
    _counters(run, [(t.stream_id, x) for t, x in streams])
    for traffic, line in streams:
        files = run.host("b").subscriber(traffic.id)
        write_records(files.frames, _frames_seen(traffic.stream_id, line, made))
    _documents(run, case, made, outcome, lines)


def _decisions(stream_id: int, line: Timeline) -> np.ndarray:
    lost = np.flatnonzero(line.lost)
    rows = np.zeros(len(lost) + 3, dtype=DECISION)
    data, feedback = rows[: len(lost)], rows[len(lost) :]
    rows["stream_id"], rows["action"], rows["session_id"] = stream_id, DROP, SESSION_ID
    data["time_ns"], data["frame_type"] = line.sent_ns[lost] + FLIGHT_NS // 2, DATA
    data["position"], data["frame_length"] = line.position[lost], line.length[lost]
    data["term_id"] = line.term_id(line.position[lost])
    data["term_offset"] = line.position[lost] % line.term_length
    data["attempt"] = 1
    feedback["rule"], feedback["frame_type"], feedback["link"] = 1, SM, 1
    feedback["position"], feedback["timing_sensitive"] = NO_POSITION, 1
    feedback["time_ns"] = np.linspace(line.sent_ns[1], line.sent_ns[-2], 3).astype(np.int64)
    return rows


def _data_packets(
    stream_id: int, port: int, line: Timeline, made: RunParameters
) -> list[tuple[int, bytes]]:
    packets = []
    again = line.lost & made.reliable
    for times, chosen in (
        (line.sent_ns, np.ones_like(again)),
        (line.arrived_ns - FLIGHT_NS, again),
    ):
        for index in np.flatnonzero(chosen):
            at, length = int(line.position[index]), int(line.length[index])
            kind = PAD if line.is_pad[index] else DATA
            head = struct.pack(
                "<iBBHiiiiq", length, 0, 0xC0, kind, at % line.term_length, SESSION_ID, stream_id,
                int(line.term_id(np.array([at]))[0]), 0,
            )  # fmt: skip
            body = b"" if kind == PAD else bytes(length - len(head))
            packets.append((int(times[index]), _datagram("a", "b", port, head + body)))
    return packets


def _nak_packets(
    stream_id: int, port: int, line: Timeline, made: RunParameters
) -> list[tuple[int, bytes]]:
    packets = []
    for index in np.flatnonzero(line.lost & made.reliable):
        at = int(line.position[index])
        term_id = int(line.term_id(np.array([at]))[0])
        offset, length = at % line.term_length, int(line.length[index])
        nak = struct.pack(
            "<iBBHiiiii", 28, 0, 0, NAK, SESSION_ID, stream_id, term_id, offset, length
        )
        at_ns = int(line.sent_ns[index]) + FLIGHT_NS + NAK_DELAY_NS
        packets.append((at_ns, _datagram("b", "a", port, nak)))
    return packets


def _datagram(source: str, destination: str, port: int, payload: bytes) -> bytes:
    addresses = [
        bytes(int(part) for part in ADDRESSES[host].split(".")) for host in (source, destination)
    ]
    ports = (40000, port) if source == "a" else (port, 40000)
    udp = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + b"".join(addresses)
    return bytes(12) + b"\x08\x00" + ip + udp


def write_pcap(path: Path, packets: list[tuple[int, bytes]]) -> None:
    """Write a nanosecond Ethernet capture of (time, packet), in order of time."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)]
    for time_ns, packet in sorted(packets):
        seconds, rest = divmod(time_ns, 1_000_000_000)
        parts.append(struct.pack("<IIII", seconds, rest, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(parts))


def announce(run: RunDir, case: Case, session_id: int = SESSION_ID) -> None:
    """Add a SETUP of each stream to the capture of host a, as if it had been sent first."""
    with run.capture("a").open("ab") as file:
        for each in case.traffic:
            term_id = each.initial_term_id or 0
            frame = struct.pack(
                "<iBBHiiiiiiii", 40, 0, 0, SETUP, 0, session_id, each.stream_id, term_id, term_id,
                each.term_length, 1408, 0,
            )  # fmt: skip
            packet = _datagram("a", "b", each.port, frame)
            seconds, rest = divmod(EPOCH_NS, 1_000_000_000)
            file.write(struct.pack("<IIII", seconds, rest, len(packet), len(packet)) + packet)


def _frames_seen(stream_id: int, line: Timeline, made: RunParameters) -> np.ndarray:
    rows = np.zeros(len(line.position), dtype=FRAME_SEEN)
    filled = line.lost & (not made.reliable)
    rows["position"] = line.position
    rows["time_ns"] = np.maximum.accumulate(line.arrived_ns) + MS
    for index in range(len(rows)):
        kind = PAD if line.is_pad[index] or filled[index] else DATA
        at = int(line.position[index])
        head = struct.pack(
            "<iBBHiiiiq", int(line.length[index]), 0, 0xC0, kind, at % line.term_length, SESSION_ID,
            stream_id, int(line.term_id(np.array([at]))[0]), 0,
        )  # fmt: skip
        rows["header"][index] = np.frombuffer(head, np.uint8)
    return rows


def _counters(run: RunDir, streams: list[tuple[int, Timeline]]) -> None:
    """Sample the positions every 5 ms, and write those that changed."""
    end_ns = max(int(line.arrived_ns.max()) for _, line in streams) + 60 * MS
    ticks = np.arange(EPOCH_NS, end_ns, SAMPLE_NS)
    for host, type_ids in (("a", (1, 2, 9)), ("b", (3, 4, 5))):
        facts, rows = [], []
        for ordinal, (stream_id, line) in enumerate(streams):
            values = _positions_at(line, ticks)
            for type_id in type_ids:
                counter_id, registration_id = 40 + ordinal * 10 + type_id, 100 + ordinal
                value = values[type_id]
                changed = np.append(True, value[1:] != value[:-1])
                row = np.zeros(int(changed.sum()), dtype=COUNTER_SAMPLE)
                row["time_ns"], row["value"] = ticks[changed], value[changed]
                row["counter_id"], row["type_id"] = counter_id, type_id
                row["registration_id"] = registration_id
                rows.append(row)
                key = struct.pack("<qii", registration_id, SESSION_ID, stream_id).ljust(112, b"\0")
                facts.append(
                    CounterFacts(
                        counter_id,
                        type_id,
                        registration_id,
                        1,
                        0,
                        "label",
                        key.hex(),
                        int(value[-1]),
                    )
                )
        files = run.host(host)
        both = np.concatenate(rows)
        write_records(files.counter_samples, both[np.argsort(both["time_ns"], kind="stable")])
        write_counters(files.counters, facts)


def _positions_at(line: Timeline, ticks: np.ndarray) -> dict[int, np.ndarray]:
    ends = np.append(0, line.position + line.length)
    arrived_ns = np.where(line.lost, line.arrived_ns, line.sent_ns + FLIGHT_NS)
    whole_ns = np.maximum.accumulate(line.arrived_ns)
    highest = np.maximum.accumulate(ends[1:][np.argsort(arrived_ns, kind="stable")])

    def contiguous(at: np.ndarray) -> np.ndarray:
        return ends[np.searchsorted(whole_ns, at, side="right")]

    snd_pos = ends[np.searchsorted(line.sent_ns, ticks, side="right")]
    hwm_index = np.searchsorted(np.sort(arrived_ns), ticks, side="right")
    return {
        1: contiguous(ticks - 6 * MS) + line.term_length // 2,
        2: snd_pos,
        9: contiguous(ticks - 2 * MS) + min(WINDOW_BYTES, line.term_length // 2),
        3: np.append(0, highest)[hwm_index],
        5: contiguous(ticks),
        4: contiguous(ticks - 3 * MS),
    }


def _documents(
    run: RunDir, case: Case, made: RunParameters, outcome: str, lines: list[Timeline]
) -> None:
    frames = sum(len(line.position) for line in lines)
    lost = sum(int(line.lost.sum()) for line in lines)
    again = lost if made.reliable else 0
    Ledger(
        {
            "a->b": LinkAccount(
                datagrams_in=frames + again,
                datagrams_out=frames + again - lost,
                datagrams_dropped=lost,
                frames={"DATA": FrameAccount(frames + again, frames + again - lost, lost)},
                lag_ns={"p50": 21_000, "p99": 84_000, "max": 1_900_000},
            ),
            "b->a": LinkAccount(
                datagrams_in=400 + again,
                datagrams_out=394 + again,
                datagrams_dropped=6,
                frames={"SM": FrameAccount(400, 394, 6), "NAK": FrameAccount(again, again, 0)},
                lag_ns={"p50": 20_000, "p99": 61_000, "max": 900_000},
            ),
        }
    ).write(run.ledger)
    phases = ["prepare", "lab up", "drivers", "traffic", "settle", "collect", "judge"]
    Manifest(
        run_id=run.path.name,
        scenario=case.name,
        seed=made.seed,
        fidelity="netns",
        command=["windtunnel", "run", case.name, "--seed", str(made.seed)],
        versions={"windtunnel": "0.1.0", "python": "3.13.1", "numba": "0.61.0"},
        host_facts={"processors": 2, "kernel": "6.18.0"},
        phases=[
            Phase(name, EPOCH_NS + at * 900 * MS, EPOCH_NS + (at + 1) * 900 * MS)
            for at, name in enumerate(phases)
        ],
        processes=[ProcessExit("a/driver", "driver", 0, True, "hosts/a/driver.log", "")],
        complete=True,
    ).write(run.manifest)
    write_document(run.verdict, verdict_document(outcome))


def verdict_document(outcome: str) -> dict[str, object]:
    """A verdict with two gates and three checks, the last of which decides."""
    bad = outcome != "PASS"
    decisive = {
        "name": "delivered_once",
        "about": "term-64k",
        "outcome": outcome,
        "text": "message 4711 differs at byte 3" if bad else "1 201 messages, each once, in order",
        "evidence": ["hosts/b/subscriber-term-64k.messages.bin"],
    }
    return {
        "schema": "windtunnel-verdict/1",
        "outcome": outcome,
        "reason": decisive["text"],
        "gates": [
            _finding("ledger_balanced", "a->b", "3 012 datagrams, none unaccounted"),
            _finding("faults_happened", "lose-data", "61 of 3 012 frames, asked for 2 %"),
        ],
        "checks": [
            _finding("positions_covered", "term-64k", "0 to 2 097 152, each byte once"),
            decisive | ({"message": 4711, "byte_offset": 3, "position": 409_600} if bad else {}),
        ],
    }


def _finding(name: str, about: str, text: str) -> dict[str, object]:
    return {"name": name, "about": about, "outcome": "PASS", "text": text, "evidence": []}
