"""A client that opens every kind of resource, prints `ready`, and is killed during a claim.

python -m tests.peer.killed_client DIRECTORY CHANNEL
"""

import sys
import time

from windtunnel.driver.client import Aeron

STREAM_ID, COUNTER_TYPE = 1001, 1101


def main() -> None:
    directory, channel = sys.argv[1:]
    client = Aeron(directory)
    client.add_subscription(channel, STREAM_ID)
    publication = client.add_exclusive_publication(channel, STREAM_ID)
    client.add_counter(COUNTER_TYPE, b"key", "killed client")
    while isinstance(publication.try_claim(100), int):
        time.sleep(0.001)
    print("ready", client.client_id, flush=True)
    time.sleep(3600)


if __name__ == "__main__":
    main()
