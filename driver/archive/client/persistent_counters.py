"""The counters in which a persistent subscription publishes its progress.

Their type ids and labels are Aeron's. Source: archive-protocol 6.2.
"""

from windtunnel.driver.archive.client.persistent_setup import PersistentParams, unjoinable
from windtunnel.driver.base.arith import I64_MIN
from windtunnel.driver.client import Aeron

STATE_TYPE_ID, DIFFERENCE_TYPE_ID, LEFT_TYPE_ID, JOINED_TYPE_ID = 114, 115, 116, 117
LABEL_LENGTH_MAX = 380


class PersistentCounters:
    """The counters of one persistent subscription."""

    def __init__(self, aeron: Aeron, params: PersistentParams) -> None:
        """Add the counters. Raises RegistrationError if the driver rejects a counter."""
        names = (
            f"{params.replay_stream_id} {unjoinable(params.replay_channel)} "
            f"{params.live_stream_id} {params.live_channel}"
        )
        self.state, self.difference, self.left, self.joined = (
            aeron.add_counter(
                type_id, b"", f"Persistent Subscription {name}: {names}"[:LABEL_LENGTH_MAX]
            )
            for type_id, name in (
                (STATE_TYPE_ID, "State"), (DIFFERENCE_TYPE_ID, "Join Difference"),
                (LEFT_TYPE_ID, "Live Left Count"), (JOINED_TYPE_ID, "Live Joined Count"),
            )
        )  # fmt: skip
        self.clear_difference()

    def clear_difference(self) -> None:
        """Set the difference between the live stream and the replay to unknown."""
        self.difference.set(I64_MIN)

    def close(self) -> None:
        """Close the counters."""
        for counter in (self.state, self.difference, self.left, self.joined):
            counter.close()
