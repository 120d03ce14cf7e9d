"""A request and response service: it sends each request back as it is.

Channels come from the environment, and AERON_DIR names the driver. The lines `WT GOT` and `WT SENT`
tell Windtunnel what this program has received and sent.
"""

import os
import signal
import sys
import time
import zlib

import pyaeron

REQUESTS, RESPONSES = 1001, 1002
SEND_TIMEOUT_S = 10.0


def send(publication: pyaeron.Publication, message: bytes) -> None:
    """Offer a message until the driver accepts it."""
    deadline_s = time.monotonic() + SEND_TIMEOUT_S
    while not publication.offer(message):
        if time.monotonic() > deadline_s:
            sys.exit("service: nobody accepts responses")
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
    received = sent = 0

    def answer(request: pyaeron.BufferView, header: pyaeron.Header) -> None:
        nonlocal received, sent
        message = bytes(request)
        print(f"WT GOT requests {received} {zlib.crc32(message)}")
        received += 1
        send(responses, message)
        print(f"WT SENT responses {sent} {zlib.crc32(message)}")
        sent += 1

    print("service ready")
    while running:
        if not requests.poll(answer):
            time.sleep(0.0005)
    client.close()
    print(f"service answered {sent} requests")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
