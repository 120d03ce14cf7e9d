"""A request and response service: it sends each request back as it is.

It executes each request once, and in order. The last one that it has executed is in a file. After a
restart, it answers this one again, since its answer may be lost, and continues with the next. So it
does with a request that the client sends again.

Channels and the name of that file come from the environment, and AERON_DIR names the driver. The
lines `WT GOT` and `WT SENT` report to Windtunnel what this program has received and sent.
"""

import os
import signal
import sys
import time
import zlib
from pathlib import Path

import pyaeron

REQUESTS, RESPONSES = 1001, 1002
SEND_TIMEOUT_S = 20.0


def number_of(message: bytes) -> int:
    return int(message.split()[1])


def send(publication: pyaeron.Publication, message: bytes) -> None:
    """Offer a message until the driver accepts it."""
    deadline_s = time.monotonic() + SEND_TIMEOUT_S
    while not publication.offer(message):
        if time.monotonic() > deadline_s:
            sys.exit(f"service: no response was accepted for {SEND_TIMEOUT_S:g} s")
        time.sleep(0.0005)


def main() -> None:
    running = True

    def stop(number: int, frame: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    client = pyaeron.Aeron(dir=os.environ["AERON_DIR"])
    responses = client.add_publication(os.environ["RESPONSES"], RESPONSES)
    requests = client.add_subscription(os.environ["REQUESTS"], REQUESTS)
    state = Path(os.environ["EXECUTED"])
    last = state.read_bytes() if state.exists() else b""
    executed = number_of(last) + 1 if last else 0

    def execute(request: bytes) -> None:
        nonlocal executed
        print(f"WT GOT requests {number_of(request)} {zlib.crc32(request)}")
        send(responses, request)
        executed = number_of(request) + 1
        # A file that is replaced is never half written.
        written = state.with_suffix(".new")
        written.write_bytes(request)
        written.replace(state)
        print(f"WT SENT responses {number_of(request)} {zlib.crc32(request)}")

    def take(request: pyaeron.BufferView, header: pyaeron.Header) -> None:
        message = bytes(request)
        if number_of(message) == executed:
            execute(message)
        elif number_of(message) < executed:
            print(f"service: request {number_of(message)} again")
            send(responses, message)
        # Otherwise one before it is missing, and the client sends both again.

    print("service ready")
    if last:
        send(responses, last)
    while running:
        if not requests.poll(take):
            time.sleep(0.0005)
    client.close()
    print(f"service executed {executed} requests")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
