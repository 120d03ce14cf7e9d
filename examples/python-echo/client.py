"""Sends numbered requests, and ends with exit code 0 when each of them has been answered in order.

At most 100 requests are unanswered at a time. If no answer arrives for a while, those that are
unanswered are sent again, because a service that was restarted has not received all of them.
"""

import os
import sys
import time
import zlib

import pyaeron

REQUESTS, RESPONSES = 1001, 1002
COUNT = 500
UNANSWERED_MAX = 100
INTERVAL_S = 0.005
REPEAT_S = 1.0
TIMEOUT_S = 20.0
"""Time in which an answer must arrive, also while the link is cut off."""


def request(number: int) -> bytes:
    return f"request {number} ".encode() + b"x" * (number * 37 % 1000)


def main() -> None:
    client = pyaeron.Aeron(dir=os.environ["AERON_DIR"])
    answers = client.add_subscription(os.environ["RESPONSES"], RESPONSES)
    requests = client.add_publication(os.environ["REQUESTS"], REQUESTS)
    received: list[bytes] = []

    def take(answer: pyaeron.BufferView, header: pyaeron.Header) -> None:
        message = bytes(answer)
        if int(message.split()[1]) == len(received):  # else it was answered before
            print(f"WT GOT responses {len(received)} {zlib.crc32(message)}")
            received.append(message)

    requests.await_connected(timeout=TIMEOUT_S)
    sent = following = 0
    due_s = heard_s = repeated_s = time.monotonic()
    while (answered := len(received)) < COUNT:
        now_s = time.monotonic()
        following = max(following, answered)
        is_due = now_s >= due_s and following < min(COUNT, answered + UNANSWERED_MAX)
        # An offer is refused without a subscriber, and if the subscriber is too far behind.
        if is_due and requests.offer(request(following)):
            if following == sent:
                print(f"WT SENT requests {sent} {zlib.crc32(request(sent))}")
                sent += 1
            following += 1
            due_s += INTERVAL_S
        if not answers.poll(take):
            time.sleep(0.0005)
        if len(received) > answered:
            heard_s = repeated_s = now_s
        elif now_s > heard_s + TIMEOUT_S:
            sys.exit(f"client: request {answered} was not answered within {TIMEOUT_S:g} s")
        elif now_s > repeated_s + REPEAT_S:
            following, repeated_s = answered, now_s
        for number in range(answered, len(received)):
            if received[number] != request(number):
                found = f"found {received[number]!r}"
                sys.exit(f"client: expected the answer to request {number}, {found}")
    requests.close()
    print(f"client: {COUNT} requests were answered")
    # The driver signals the end of the stream only while this client lives.
    time.sleep(0.5)
    client.close()


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
