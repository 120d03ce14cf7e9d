"""The parameters of a replication, which are common to all replication request messages."""

from dataclasses import dataclass

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.replication.replication_channels import ReplicationChannels
from windtunnel.driver.base.arith import I64_MIN


@dataclass(frozen=True, kw_only=True)
class ReplicationRequest:
    """The parameters of a replication. The value -1 means that a parameter is not set."""

    source_id: int
    destination_id: int
    stop_position: int
    file_io_max_length: int
    session_id: int
    channels: ReplicationChannels

    def length_from(self, position: int) -> int:
        """Return the length in bytes to replay from a position to the stop position, or -1 if no
        stop position is set.

        As in Aeron, the length wraps around if the stop position is far before the given position.
        """
        if self.stop_position == NULL_VALUE:
            return NULL_VALUE
        return (self.stop_position - position - I64_MIN) % (1 << 64) + I64_MIN
