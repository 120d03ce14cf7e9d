"""Adds the subscriptions of recorded streams without waiting for the driver.

    add --> [waiting] --at most IN_FLIGHT_MAX per client--> driver --> collect

The driver responds to a channel with a host name when it has looked up the name, which may take
longer than other clients can wait. Subscriptions that one client requests beyond the limit wait
here, so the names of one client delay only its own requests.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.recording.recorded_stream import RecordedStream
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.errors import ClientTerminatedError
from windtunnel.driver.client.handlers import AvailableImageHandler

IN_FLIGHT_MAX = 4
"""The maximum number of subscriptions per client that the driver is adding at a time. A larger
number would let one client keep all lookup threads of the driver busy."""


@dataclass(eq=False)
class _Request:
    """A request to the driver for the subscription of one recorded stream."""

    stream: RecordedStream
    channel: str
    on_available_image: AvailableImageHandler
    registration_id: int | None = None
    """The registration id, or None before the request was sent to the driver."""


class SubscriptionRequests:
    """The subscription requests that the driver has not answered yet. Only the conductor's thread
    uses them.
    """

    def __init__(self, client: Aeron) -> None:
        self._client = client
        self._requests: list[_Request] = []

    def add(
        self, stream: RecordedStream, channel: str, on_available_image: AvailableImageHandler
    ) -> None:
        """Request a subscription now, or later if the client has too many requests in flight.

        Raises ClientError.
        """
        request = _Request(stream, channel, on_available_image)
        if self._may_send(request):
            self._send(request)
        self._requests.append(request)

    def remove(self, stream: RecordedStream) -> bool:
        """Withdraw the request for a stream. Returns whether a request existed."""
        request = next((each for each in self._requests if each.stream is stream), None)
        if request is None:
            return False
        self._requests.remove(request)
        if request.registration_id is not None:
            self._client.abandon(request.registration_id)
        return True

    def collect(self) -> list[RecordedStream]:
        """Send waiting requests, and return the streams for which the driver has responded.

        Such a stream has either a subscription or a failure.
        """
        done = []
        for request in tuple(self._requests):
            stream = request.stream
            try:
                if request.registration_id is not None:
                    stream.subscription = self._client.get_subscription(request.registration_id)
                elif self._may_send(request):
                    self._send(request)
            except ClientTerminatedError:
                raise
            except DriverError as error:
                stream.failure = error
            if stream.subscription is not None or stream.failure is not None:
                self._requests.remove(request)
                done.append(stream)
        return done

    def _may_send(self, request: _Request) -> bool:
        client = request.stream.session.image
        in_flight = sum(
            each.registration_id is not None and each.stream.session.image is client
            for each in self._requests
        )
        return in_flight < IN_FLIGHT_MAX

    def _send(self, request: _Request) -> None:
        request.registration_id = self._client.async_add_subscription(
            request.channel, request.stream.stream_id,
            on_available_image=request.on_available_image,
        )  # fmt: skip
