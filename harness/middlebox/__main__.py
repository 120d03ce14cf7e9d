"""The relay process: forwards packets between hosts, and applies the scenario's faults and
impairments.

    python -m windtunnel.harness.middlebox --case FILE --interface IF ... --out DIR

    open interfaces -> compile -> find hosts -> "ready" -> forward ... SIGTERM -> drain -> ledger

Exit codes: 0 if every packet is accounted for; 3 if the relay failed or could not do all of its
work, with the reason on stderr. The relay ignores SIGINT, which the harness handles.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.huge_pages import avoid_huge_pages
from windtunnel.harness.artifact.middlebox.decision import DecisionLogError, read_replayable
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.middlebox.engine.packet import ENVELOPE_LENGTH_MAX
from windtunnel.harness.middlebox.engine.readdress import make_rewritten_ports
from windtunnel.harness.middlebox.engine.replayed_decisions import (
    ReplayedDecisions,
    ReplayError,
    compile_decisions,
)
from windtunnel.harness.middlebox.engine.state import (
    HOLD_OVERFLOWS,
    SESSION_OVERFLOWS,
    Engine,
    make_engine,
)
from windtunnel.harness.middlebox.impairment.impairment import make_impairments
from windtunnel.harness.middlebox.relay import relay as loop
from windtunnel.harness.middlebox.relay import relay_state as sockets
from windtunnel.harness.middlebox.relay.link_control import LinkControl
from windtunnel.harness.middlebox.relay.neighbour import find_neighbour
from windtunnel.harness.middlebox.relay.port import Port, PortError, open_port
from windtunnel.harness.middlebox.relay.relay import run
from windtunnel.harness.middlebox.relay.relay_state import Relay, make_relay
from windtunnel.harness.middlebox.relay.report import DecisionLog, ledger
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.link_change import CHANGED

EXIT_HARNESS = 3
PRIORITY = -15
"""Niceness of the relay process."""
READY = "ready {interfaces}"
TURN_NS = 50_000_000
"""Longest run of the compiled loop before decisions are written and signals are checked."""


class Stop:
    """A flag that is set when the process receives SIGTERM."""

    def __init__(self) -> None:
        self.is_requested = False
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _on_signal(self, number: int, frame: object) -> None:
        self.is_requested = True


def main() -> int:
    """Run the relay until SIGTERM. Returns the exit code."""
    arguments = _parser().parse_args()
    avoid_huge_pages()
    stop = Stop()
    try:
        case = Case.read(arguments.case)
    except (OSError, ValueError) as error:
        return _fail(f"{arguments.case}: {error}")
    try:
        return _forward(case, arguments.interface, RunDir(arguments.out), stop)
    except (PortError, DecisionLogError, DocumentError, ReplayError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or 'the relay'}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m windtunnel.harness.middlebox", description=__doc__
    )
    parser.add_argument("--case", type=Path, required=True, help="the run's case.json")
    parser.add_argument(
        "--interface",
        required=True,
        action="append",
        help="interface that leads to a host; repeat for each host, in the order of case.json",
    )
    parser.add_argument("--out", type=Path, required=True, help="run folder to write to")
    return parser


def _forward(case: Case, interfaces: Sequence[str], run_dir: RunDir, stop: Stop) -> int:
    _raise_priority()
    if len(interfaces) != len(case.hosts):
        names = ", ".join(host.name for host in case.hosts)
        return _fail(f"{len(interfaces)} interfaces: expected one for each of the hosts {names}")
    replayed = compile_decisions(case, read_replayable(run_dir.replayed)) if case.replays else None
    ports = [open_port(each) for each in interfaces]
    relay, engine = assemble(case, ports, replayed)
    run(relay, engine, 0, False)
    _find_macs(case, ports, relay, stop)
    if stop.is_requested:
        return _fail("stopped before all hosts answered ARP")
    log = DecisionLog(run_dir.decisions)
    for port in ports:
        port.discard()
    _reset_accounts(relay, engine)
    control = LinkControl(case, run_dir)
    print(READY.format(interfaces=" ".join(interfaces)), flush=True)
    length_max = max(port.packet_length_max for port in ports)
    failure = _turn_until_stopped(relay, engine, log, stop, control, length_max)
    log.drain(engine)
    log.close()
    drops = [port.kernel_drops() for port in ports]
    ledger(engine, case, relay, drops).write(run_dir.ledger)
    errors = [failure] if failure else []
    errors += _errors(engine, relay, ports)
    for text in errors:
        _fail(text)
    return EXIT_HARNESS if errors else 0


def assemble(
    case: Case, ports: Sequence[Port], replayed: ReplayedDecisions | None = None
) -> tuple[Relay, Engine]:
    """Create the relay and its engine for open interfaces, leaving the MAC addresses unset."""
    length_max = max(port.packet_length_max for port in ports)
    relay = make_relay(
        fds=[port.socket.fileno() for port in ports],
        hosts=np.array([_halves(host.address) for host in case.hosts], dtype=np.int64),
        macs=np.zeros((len(ports), 12), dtype=np.uint8),
        routes=routes(case),
        ports=np.array(case.aeron_ports, dtype=np.int64),
        packet_length_max=length_max,
        rewritten_ports=make_rewritten_ports(case),
        impairments=make_impairments(case, length_max),
    )
    engine = make_engine(
        case,
        datagram_length_max=length_max,
        envelope_length_max=ENVELOPE_LENGTH_MAX,
        replayed=replayed,
    )
    return relay, engine


def routes(case: Case) -> NDArray[np.int64]:
    """Return a table with the link direction code for each pair of relay ports, or NO_LINK for a
    pair without a link.
    """
    names = [host.name for host in case.hosts]
    table = np.full((len(names), len(names)), sockets.NO_LINK, dtype=np.int64)
    for code, (sender, receiver) in enumerate(case.directions):
        table[names.index(sender), names.index(receiver)] = code
    return table


def _raise_priority() -> None:
    """Raise this process's priority, if allowed, because a late relay distorts the run."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


def _find_macs(case: Case, ports: Sequence[Port], relay: Relay, stop: Stop) -> None:
    for side, (port, host) in enumerate(zip(ports, case.hosts, strict=True)):
        if stop.is_requested:
            return
        mac = find_neighbour(port, host.address)
        relay.macs[side] = np.frombuffer(mac + port.mac, dtype=np.uint8)


def _turn_until_stopped(
    relay: Relay,
    engine: Engine,
    log: DecisionLog,
    stop: Stop,
    control: LinkControl,
    packet_length_max: int,
) -> str:
    """Forward packets until a stop is requested and all held packets are sent. Returns an error
    message, or an empty string.
    """
    give_up_ns = 0
    while True:
        if stop.is_requested and not give_up_ns:
            give_up_ns = time.time_ns() + control.drain_ns(packet_length_max)
        for number in control.update(relay):
            print(f"{CHANGED} {number}", flush=True)
        status = run(relay, engine, time.time_ns() + TURN_NS, bool(give_up_ns))
        log.drain(engine)
        if status == loop.FAILED:
            code = int(relay.counts[:, sockets.ERROR].max())
            return f"receiving failed: {os.strerror(code)}"
        if status == loop.DRAINED:
            return ""
        if give_up_ns and time.time_ns() > give_up_ns:
            return "frames were still arriving or held when the drain timeout expired"


def _errors(engine: Engine, relay: Relay, ports: Sequence[Port]) -> list[str]:
    """Return a description of each kind of error that occurred, such as packets that could not be
    sent or frames for which the relay had no space.
    """
    found = []
    counts = relay.counts.sum(axis=0)
    if engine.state[HOLD_OVERFLOWS]:
        found.append(
            f"{engine.state[HOLD_OVERFLOWS]} frames were not held, because no slot was free"
        )
    if engine.state[SESSION_OVERFLOWS]:
        found.append(
            f"{engine.state[SESSION_OVERFLOWS]} SETUP frames were ignored: the session table was "
            "full"
        )
    unanswered = relay.rewritten_ports.overflows.sum()
    if unanswered:
        found.append(
            f"{unanswered} datagrams had their source port rewritten without a record: the port "
            "table was full, so replies to them are lost"
        )
    if counts[sockets.OVERSIZE]:
        largest = max(port.mtu for port in ports)
        found.append(
            f"{counts[sockets.OVERSIZE]} packets exceeded the interface's MTU of "
            f"{largest}: disable segmentation offload at the sender"
        )
    if counts[sockets.FRAGMENTS]:
        found.append(
            f"{counts[sockets.FRAGMENTS]} IP fragments were forwarded without impairment: "
            "the link's MTU is too small"
        )
    failures = relay.link_counts[:, sockets.SEND_FAILURES].sum()
    if failures:
        code = int(relay.counts[:, sockets.ERROR].max())
        found.append(f"{failures} packets were not sent: {os.strerror(code)}")
    return found


def _reset_accounts(relay: Relay, engine: Engine) -> None:
    """Reset the counts, to exclude packets that passed before all hosts were found."""
    relay.counts[:] = 0
    relay.link_counts[:] = 0
    relay.lags[:] = 0
    relay.impairments.counts[:] = 0
    relay.impairments.frames[:] = 0
    relay.impairments.lates[:] = 0
    engine.datagrams[:] = 0
    engine.frames[:] = 0


def _halves(address: str) -> NDArray[np.int64]:
    """Return the two 64-bit halves of an IP address as signed integers. An IPv4 address is mapped
    to IPv6 first.
    """
    parsed = ip_address(address)
    packed = parsed.packed if parsed.version == 6 else bytes(10) + b"\xff\xff" + parsed.packed
    return np.frombuffer(packed, dtype=">i8").astype(np.int64)


def _fail(text: str) -> int:
    print(f"windtunnel relay: {text}", file=sys.stderr, flush=True)
    return EXIT_HARNESS


if __name__ == "__main__":
    sys.exit(main())
