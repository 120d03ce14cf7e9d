"""What a client wants to have copied, whichever kind of request it said that by."""

from dataclasses import dataclass

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.replication.replication_channels import ReplicationChannels
from windtunnel.driver.base.arith import I64_MIN


@dataclass(frozen=True, kw_only=True)
class ReplicationRequest:
    """What is to be copied; -1 for what is left open."""

    source_id: int
    destination_id: int
    stop_position: int
    file_io_max_length: int
    session_id: int
    channels: ReplicationChannels

    def length_from(self, position: int) -> int:
        """How much is to be replayed; as in Aeron it wraps where the stop is far before that."""
        if self.stop_position == NULL_VALUE:
            return NULL_VALUE
        return (self.stop_position - position - I64_MIN) % (1 << 64) + I64_MIN
