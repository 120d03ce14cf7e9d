"""A stream without a driver: the log of a publication and an image that reads it."""

import numpy as np

from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.logbuffer.parameters import LogParameters

SESSION_ID, STREAM_ID, INITIAL_TERM_ID = -42, 1001, 2147483647
TERM_LENGTH, MTU = 65_536, 1_408
SUB_POS, PUB_LMT = 3, 4


class StubConductor:
    """Stub of the client's conductor for a publication."""

    def __init__(self, values):
        self.counter_values = values
        self.released = []

    def release_publication(self, publication, *, revoke=False):
        self.released.append((publication, revoke))
        publication.on_client_closed("closed by its owner")


class OwnStream:
    def __init__(self, folder, *, log_type=descriptor.EXCLUSIVE_PUBLICATION):
        self.values = np.zeros(8 * counters.COUNTER_LENGTH, np.uint8)
        self.mapped = LogBuffer.create(
            folder / "own.logbuffer",
            LogParameters(
                type=log_type, correlation_id=7, session_id=SESSION_ID, stream_id=STREAM_ID,
                initial_term_id=INITIAL_TERM_ID, term_length=TERM_LENGTH, mtu_length=MTU,
            ),
        )  # fmt: skip
        self.limit_to(1 << 40)
        self.connect(True)
        self.end_at((1 << 63) - 1)
        self.conductor = StubConductor(self.values)
        is_exclusive = log_type == descriptor.EXCLUSIVE_PUBLICATION
        kind = ExclusivePublication if is_exclusive else Publication
        self.publication = kind(
            self.conductor, self.mapped, channel="own", registration_id=7,
            original_registration_id=7, limit_counter_id=PUB_LMT, channel_status_id=-1,
        )  # fmt: skip
        self.image = self.new_image()

    def new_image(self):
        return Image(
            self.mapped, self.values, correlation_id=8, session_id=SESSION_ID,
            subscription_registration_id=9, position_counter_id=SUB_POS, source_identity="own:1",
        )  # fmt: skip

    def limit_to(self, position):
        counters.set_release(self.values, PUB_LMT, position)

    def connect(self, is_connected):
        descriptor.put_is_connected_release(self.mapped.log, self.mapped.meta_at, is_connected)

    def end_at(self, position):
        descriptor.put_end_of_stream_position_release(
            self.mapped.log, self.mapped.meta_at, position
        )

    def counted_position(self):
        return int(counters.get(self.values, SUB_POS))

    def write(self, *messages):
        for message in messages:
            while (position := self.publication.offer(message)) <= 0:
                assert position == -3, position  # ADMIN_ACTION: the term turned
        return position

    def pad(self, length):
        """Write one padding frame with `length` bytes of payload."""
        assert self.publication.append_padding(length) > 0
