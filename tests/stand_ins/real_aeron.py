"""The real Aeron C driver and client behind our subject's command lines.

    python -m tests.stand_ins.real_aeron driver --dir D
    python -m tests.stand_ins.real_aeron publisher|subscriber --case F --traffic ID --aeron-dir D
                                         --out DIR [--sabotage NAME]

It allows the lab to be tested end to end without our own driver. The subscriber writes no frames
file, since this client does not expose PADs.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pyaeron

from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.delivery import DELIVERY
from windtunnel.harness.artifact.host.message_times import DELIVERY_TIME, OFFER_TIME
from windtunnel.harness.artifact.host.offer import OFFER
from windtunnel.harness.artifact.run.plan import message_bytes, plan
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase

PROGRESS_S = 0.1
IDLE_S = 0.0002
FRAGMENT_LIMIT = 64


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["driver", "publisher", "subscriber"])
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--case", type=Path)
    parser.add_argument("--traffic")
    parser.add_argument("--aeron-dir", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sabotage", default="")
    options = parser.parse_args(argv)
    if options.role == "driver":
        return drive(options.dir)
    case = Case.read(options.case)
    traffic = case.traffic_by_id(options.traffic)
    files = HostDir(options.out)
    client = pyaeron.Aeron(dir=str(options.aeron_dir))
    if options.role == "publisher":
        publish(client, case, traffic, files, options.sabotage)
    else:
        subscribe(client, case, traffic, files)
    client.close()
    return 0


def drive(directory: Path) -> int:
    # Blocked before there are other threads, which would receive the signal otherwise.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    with pyaeron.MediaDriver(dir=str(directory), threading="shared"):
        print("ready", flush=True)
        signal.sigwait({signal.SIGTERM})
    return 0


class ProgressPrinter:
    """Prints progress periodically."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self._printed_s = 0.0

    def print_if_due(self, count: int, last: bool = False) -> None:
        now_s = time.monotonic()
        if last or now_s - self._printed_s >= PROGRESS_S:
            self._printed_s = now_s
            print(f"progress {count}/{self._total_bytes}", flush=True)


def wait_until(condition) -> None:
    while not condition():
        time.sleep(IDLE_S)


def publish(client, case: Case, traffic: TrafficCase, files: HostDir, sabotage: str) -> None:
    payload = np.fromfile(case.payload.path, dtype=np.uint8)
    made = plan(
        case.seed, traffic.id, traffic.total_bytes, traffic.longest_bytes, traffic.shortest_bytes
    )
    add = (
        client.add_exclusive_publication
        if traffic.publication == "exclusive"
        else client.add_publication
    )
    publication = add(traffic.channel, traffic.stream_id)
    wait_until(lambda: publication.is_connected)
    started_ns, progress = time.time_ns(), ProgressPrinter(traffic.total_bytes)
    offers = np.zeros(made.count, dtype=OFFER)
    times = np.zeros(made.count, dtype=OFFER_TIME)
    count, sent, waits = 0, 0, {pyaeron.BACK_PRESSURED: 0, pyaeron.ADMIN_ACTION: 0}
    for index, (start, length) in enumerate(zip(made.starts, made.lengths, strict=True)):
        if sabotage == "skip-message" and index == 5:
            continue
        data = message_bytes(payload, int(start), int(length)).tobytes()
        times[count] = time.time_ns()
        while (position := publication.offer(data)) <= 0:
            waits[position] += 1
            time.sleep(IDLE_S)
        offers[count] = (index, length, 0, position)
        count += 1
        sent += int(length)
        progress.print_if_due(sent)
    progress.print_if_due(sent, last=True)
    offers[:count].tofile(files.publisher(traffic.id).offers)
    times[:count].tofile(files.publisher(traffic.id).times)
    PublisherFacts(
        session_id=publication.session_id,
        stream_id=traffic.stream_id,
        initial_term_id=traffic.initial_term_id or 0,
        term_length=traffic.term_length,
        mtu=traffic.mtu,
        start_position=traffic.initial_position,
        end_position=publication.position,
        message_count=made.count,
        back_pressure_count=waits[pyaeron.BACK_PRESSURED],
        admin_action_count=waits[pyaeron.ADMIN_ACTION],
        started_ns=started_ns,
        ended_ns=time.time_ns(),
        error=None,
    ).write(files.publisher(traffic.id).document)
    publication.close()


def subscribe(client, case: Case, traffic: TrafficCase, files: HostDir) -> None:
    subscription = client.add_subscription(traffic.receive, traffic.stream_id)
    print("ready", flush=True)
    wait_until(lambda: subscription.image_count > 0)
    image = subscription.image_at_index(0)
    started_ns, join = time.time_ns(), image.position
    progress = ProgressPrinter(traffic.total_bytes)
    deliveries: list[tuple[int, int, int]] = []
    times_ns: list[int] = []
    received = 0
    own = files.subscriber(traffic.id)
    with own.messages.open("wb") as messages:

        def on_message(view, header) -> None:
            nonlocal received
            data = bytes(view)
            messages.write(data)
            deliveries.append((header.position, len(data), header.session_id))
            times_ns.append(time.time_ns())
            received += len(data)

        while not image.is_end_of_stream:
            if subscription.poll(on_message, FRAGMENT_LIMIT) == 0:
                time.sleep(IDLE_S)
            progress.print_if_due(received)
    progress.print_if_due(received, last=True)
    np.array(deliveries, dtype=DELIVERY).tofile(own.index)
    np.array(times_ns, dtype=np.int64).view(DELIVERY_TIME).tofile(own.times)
    SubscriberFacts(
        session_id=image.session_id,
        stream_id=traffic.stream_id,
        join_position=join,
        end_position=image.position,
        eos_seen=image.is_end_of_stream,
        message_count=len(deliveries),
        message_bytes=received,
        started_ns=started_ns,
        ended_ns=time.time_ns(),
        error=None,
    ).write(own.document)
    subscription.close()


if __name__ == "__main__":
    sys.exit(main())
