"""The relay as a process: `python -m harness.middlebox --case FILE --left IF --right IF --out DIR`.

    open interfaces -> compile -> find hosts -> "ready" -> forward ... SIGTERM -> drain -> ledger

Exit codes: 0 all accounted for; 3 the relay could not do its work, or not all of it (the text on
stderr says why). SIGINT is the harness's affair and is ignored here.
"""

import argparse
import os
import signal
import sys
import time
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.artifact.decision import DecisionLogError, read_repeatable
from harness.artifact.run_dir import RunDir
from harness.middlebox import relay as loop
from harness.middlebox.fates import FateError, Fates, compile_fates
from harness.middlebox.neighbour import find_neighbour
from harness.middlebox.packet import ENVELOPE_LENGTH_MAX
from harness.middlebox.port import Port, PortError, open_port
from harness.middlebox.relay import Relay, make_relay, run
from harness.middlebox.report import DecisionLog, ledger
from harness.middlebox.state import HOLD_OVERFLOWS, SESSION_OVERFLOWS, Engine, make_engine
from harness.middlebox.weather import make_weather
from harness.scenario.case import Case

EXIT_HARNESS = 3
PRIORITY = -15
"""Niceness of the process."""
READY = "ready left={left} right={right}"
TURN_NS = 50_000_000
"""Longest stay in the kernel before decisions are written and signals are looked at."""
DRAIN_NS = 12_000_000_000
"""Longest time for the last frames to leave: above the longest hold that a scenario can order."""


class Stop:
    """Whether SIGTERM has come."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _on_signal(self, number: int, frame: object) -> None:
        self.asked = True


def main() -> int:
    """Run the relay until SIGTERM; returns the exit code."""
    arguments = _parser().parse_args()
    stop = Stop()
    try:
        case = Case.read(arguments.case)
    except (OSError, ValueError) as error:
        return _refuse(f"{arguments.case}: {error}")
    try:
        return _forward(case, arguments.left, arguments.right, RunDir(arguments.out), stop)
    except (PortError, DecisionLogError, FateError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.filename or 'the relay'}: {error.strerror}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness.middlebox", description=__doc__)
    parser.add_argument("--case", type=Path, required=True, help="case.json of the run")
    parser.add_argument("--left", required=True, help="interface towards the link's first host")
    parser.add_argument("--right", required=True, help="interface towards its second host")
    parser.add_argument("--out", type=Path, required=True, help="the run folder")
    return parser


def _forward(case: Case, left: str, right: str, run_dir: RunDir, stop: Stop) -> int:
    _raise_priority()
    fates = compile_fates(case, read_repeatable(run_dir.replayed)) if case.replays else None
    ports = open_port(left), open_port(right)
    relay, engine = assemble(case, ports, fates)
    run(relay, engine, 0, False)
    _address(case, ports, relay, stop)
    if stop.asked:
        return _refuse("asked to stop before both hosts were found")
    log = DecisionLog(run_dir.decisions)
    for port in ports:
        port.discard()
    _forget(relay, engine)
    print(READY.format(left=left, right=right), flush=True)
    failure = _turn_until_stopped(relay, engine, log, stop)
    log.drain(engine)
    log.close()
    drops = ports[0].kernel_drops(), ports[1].kernel_drops()
    ledger(engine, case, relay, drops).write(run_dir.ledger)
    complaints = [failure] if failure else []
    complaints += _complaints(engine, relay, ports)
    for text in complaints:
        _refuse(text)
    return EXIT_HARNESS if complaints else 0


def assemble(
    case: Case, ports: tuple[Port, Port], fates: Fates | None = None
) -> tuple[Relay, Engine]:
    """The relay and its engine for two open interfaces; MAC addresses are still unknown."""
    length_max = max(port.packet_length_max for port in ports)
    relay = make_relay(
        fds=(ports[0].socket.fileno(), ports[1].socket.fileno()),
        hosts=np.array([_halves(host.address) for host in case.hosts], dtype=np.int64),
        macs=np.zeros((2, 12), dtype=np.uint8),
        ports=np.array(sorted({traffic.port for traffic in case.traffic}), dtype=np.int64),
        packet_length_max=length_max,
        weather=make_weather(case, length_max),
    )
    engine = make_engine(
        case,
        datagram_length_max=length_max,
        envelope_length_max=ENVELOPE_LENGTH_MAX,
        fates=fates,
    )
    return relay, engine


def _raise_priority() -> None:
    """Run before the hosts' processes where that is allowed: a late relay is a fault of its own."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


def _address(case: Case, ports: tuple[Port, Port], relay: Relay, stop: Stop) -> None:
    for side, (port, host) in enumerate(zip(ports, case.hosts, strict=True)):
        if stop.asked:
            return
        mac = find_neighbour(port, host.address)
        relay.macs[side] = np.frombuffer(mac + port.mac, dtype=np.uint8)


def _turn_until_stopped(relay: Relay, engine: Engine, log: DecisionLog, stop: Stop) -> str:
    """Forward until asked to stop and drained; returns what went wrong, or nothing."""
    give_up_ns = 0
    while True:
        if stop.asked and not give_up_ns:
            give_up_ns = time.time_ns() + DRAIN_NS
        status = run(relay, engine, time.time_ns() + TURN_NS, bool(give_up_ns))
        log.drain(engine)
        if status == loop.FAILED:
            code = int(relay.counts[:, loop.ERROR].max())
            return f"receiving failed: {os.strerror(code)}"
        if status == loop.DRAINED:
            return ""
        if give_up_ns and time.time_ns() > give_up_ns:
            return "frames still came or waited long after the end was asked for"


def _complaints(engine: Engine, relay: Relay, ports: tuple[Port, Port]) -> list[str]:
    """What the relay could not do as ordered, in words."""
    found = []
    counts = relay.counts.sum(axis=0)
    if engine.state[HOLD_OVERFLOWS]:
        found.append(f"{engine.state[HOLD_OVERFLOWS]} frames found no room to wait and passed")
    if engine.state[SESSION_OVERFLOWS]:
        found.append(f"{engine.state[SESSION_OVERFLOWS]} SETUP frames found no room for a session")
    if counts[loop.OVERSIZE]:
        largest = max(port.mtu for port in ports)
        found.append(
            f"{counts[loop.OVERSIZE]} packets were longer than the interface's MTU of {largest}: "
            "switch segmentation offload off at the sender"
        )
    if counts[loop.FRAGMENTS]:
        found.append(
            f"{counts[loop.FRAGMENTS]} IP fragments passed undisturbed: the link's MTU is too small"
        )
    if counts[loop.SEND_FAILURES]:
        code = int(relay.counts[:, loop.ERROR].max())
        found.append(f"{counts[loop.SEND_FAILURES]} packets not sent: {os.strerror(code)}")
    return found


def _forget(relay: Relay, engine: Engine) -> None:
    """Start the accounts afresh: what came before the hosts were found was nobody's traffic."""
    relay.counts[:] = 0
    relay.lags[:] = 0
    relay.weather.counts[:] = 0
    relay.weather.frames[:] = 0
    relay.weather.lates[:] = 0
    engine.datagrams[:] = 0
    engine.frames[:] = 0


def _halves(address: str) -> NDArray[np.int64]:
    """An address as the signed halves of its IPv6 form."""
    parsed = ip_address(address)
    packed = parsed.packed if parsed.version == 6 else bytes(10) + b"\xff\xff" + parsed.packed
    return np.frombuffer(packed, dtype=">i8").astype(np.int64)


def _refuse(text: str) -> int:
    print(f"windtunnel relay: {text}", file=sys.stderr, flush=True)
    return EXIT_HARNESS


if __name__ == "__main__":
    sys.exit(main())
