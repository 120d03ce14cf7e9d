"""Commands and responses of a driver's CnC file, without a client library."""

import numpy as np

from windtunnel.driver.cnc import broadcast, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.command.codec import Command, Response, decode_response


class RawClient:
    """Sends commands for any number of clients, and reads all responses."""

    def __init__(self, cnc: CncFile) -> None:
        self.cnc = cnc
        self.reader = CountersReader(cnc.counters_metadata, cnc.counters_values)
        self._receiver = broadcast.make_receiver(cnc.to_clients)
        self._scratch = broadcast.make_scratch(cnc.to_clients)

    def next_id(self) -> int:
        return int(ring_buffer.next_correlation_id(self.cnc.to_driver))

    def send(self, command: Command) -> None:
        self.send_bytes(command.TYPE_ID, command.encode())

    def send_bytes(self, type_id: int, content: bytes) -> None:
        source = np.frombuffer(content, dtype=np.uint8).copy()
        ring = self.cnc.to_driver
        assert ring_buffer.write(ring, type_id, source, 0, source.size) == ring_buffer.OK

    def receive(self) -> Response | None:
        """Return the next response, or None if there is none yet."""
        type_id, length = broadcast.receive(self.cnc.to_clients, self._receiver, self._scratch)
        assert type_id >= broadcast.NO_MESSAGE
        if type_id == broadcast.NO_MESSAGE:
            return None
        return decode_response(type_id, self._scratch[:length].copy())
