"""Sends numbered requests, and ends with exit code 0 when each of them has been answered in order.

A request is sent when the one before it has been answered.
"""

import os
import sys
import time
import zlib

import pyaeron

REQUESTS, RESPONSES = 1001, 1002
COUNT = 500
TIMEOUT_S = 20.0
"""Time in which a request must be accepted and answered, also while the link is cut off."""


def request(number: int) -> bytes:
    return f"request {number} ".encode() + b"x" * (number % 1000)


def main() -> None:
    client = pyaeron.Aeron(dir=os.environ["AERON_DIR"])
    answers = client.add_subscription(os.environ["RESPONSES"], RESPONSES)
    requests = client.add_publication(os.environ["REQUESTS"], REQUESTS)
    received: list[bytes] = []

    def take(answer: pyaeron.BufferView, header: pyaeron.Header) -> None:
        message = bytes(answer)
        print(f"WT GOT responses {len(received)} {zlib.crc32(message)}")
        received.append(message)

    for number in range(COUNT):
        message = request(number)
        deadline_s = time.monotonic() + TIMEOUT_S
        while not requests.offer(message):
            wait(deadline_s, f"request {number} was not accepted")
        print(f"WT SENT requests {number} {zlib.crc32(message)}")
        while len(received) <= number:
            if not answers.poll(take):
                wait(deadline_s, f"request {number} was not answered")
        if received[number] != message:
            sys.exit(f"client: expected the answer to request {number}, found {received[number]!r}")
    requests.close()
    print(f"client: {COUNT} requests were answered")
    # The driver signals the end of the stream only while this client lives.
    time.sleep(0.5)
    client.close()


def wait(deadline_s: float, text: str) -> None:
    """Wait a little, or end with an error after the deadline."""
    if time.monotonic() > deadline_s:
        sys.exit(f"client: {text} within {TIMEOUT_S:g} s")
    time.sleep(0.0005)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
