"""Reading a stream: all its sessions in turn.

The images are an immutable tuple that the client's conductor replaces as a whole, so that a poll
never sees a list in the middle of a change. Each poll begins with the next image, so that none
waits behind a busy one.
Source: Aeron 1.53, C client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from windtunnel.driver.client import channel_status
from windtunnel.driver.client.context import ImageHandler
from windtunnel.driver.client.destinations import ReceiveDestinations
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.image.fragment_reader import (
    NO_LIMIT,
    ControlledHandler,
    FragmentHandler,
)
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.image.log_reader import BlockHandler, RawBlockHandler
from windtunnel.driver.command.image import RejectImage

if TYPE_CHECKING:
    from windtunnel.driver.client.conductor.conductor import ClientConductor

REASON_LENGTH_MAX = 1023


class Subscription(ReceiveDestinations):
    """One end of a stream, for reading; polled by one thread at a time."""

    def __init__(
        self,
        conductor: ClientConductor,
        *,
        channel: str,
        stream_id: int,
        registration_id: int,
        channel_status_id: int = -1,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> None:
        self._conductor = conductor
        self.channel = channel
        self.stream_id = stream_id
        self.registration_id = registration_id
        self.channel_status_id = channel_status_id
        self.images: tuple[Image, ...] = ()
        """The sessions that can be read now."""
        self._round_robin = 0
        self.on_available_image = on_available_image
        self.on_unavailable_image = on_unavailable_image
        self.is_closed = False

    def __iter__(self) -> Iterator[Image]:
        return iter(self.images)

    @property
    def is_connected(self) -> bool:
        """Whether any session can be read."""
        return any(not image.is_closed for image in self.images)

    @property
    def image_count(self) -> int:
        """How many sessions can be read now."""
        return len(self.images)

    def image_at_index(self, index: int) -> Image:
        """The image of that place, the longest known first. Raises IndexError."""
        return self.images[index]

    def image_by_session_id(self, session_id: int) -> Image | None:
        """The image of one session, or None."""
        return next((item for item in self.images if item.session_id == session_id), None)

    def _poll_in_turn(self, limit: int, poll: Callable[[Image, int], int]) -> int:
        images = self.images
        start = self._round_robin
        self._round_robin += 1
        if start >= len(images):
            start, self._round_robin = 0, 1
        count = 0
        for image in images[start:] + images[:start]:
            if count >= limit:
                break
            count += poll(image, limit - count)
        return count

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Hand out up to `fragment_limit` fragments. Returns how many; 0 once it is closed."""
        return self._poll_in_turn(fragment_limit, lambda image, left: image.poll(handler, left))

    def controlled_poll(self, handler: ControlledHandler, fragment_limit: int = 10) -> int:
        """`poll` whose handler answers each fragment with an Action, for its image alone."""
        return self._poll_in_turn(
            fragment_limit, lambda image, left: image.controlled_poll(handler, left)
        )

    def poll_batch(self, batch: FragmentBatch, fragment_limit: int = NO_LIMIT) -> int:
        """Empty the batch and fill it with copies of fragments. Returns how many."""
        batch.clear()
        return self._poll_in_turn(fragment_limit, lambda image, left: image.poll_batch(batch, left))

    def poll_kernel(
        self, handler: Callable[..., Any], state: Any, fragment_limit: int = NO_LIMIT
    ) -> int:
        """Let a compiled handler see the fragments, see `Image.poll_kernel`. Returns how many."""
        return self._poll_in_turn(
            fragment_limit, lambda image, left: image.poll_kernel(handler, state, left)
        )

    def block_poll(self, handler: BlockHandler, block_length_limit: int) -> int:
        """Hand out runs of whole frames, one of each session. Returns the bytes passed."""
        return sum(image.block_poll(handler, block_length_limit) for image in self.images)

    def raw_poll(self, handler: RawBlockHandler, block_length_limit: int) -> int:
        """Tell where runs of whole frames lie, one of each session. Returns the bytes passed."""
        return sum(image.raw_poll(handler, block_length_limit) for image in self.images)

    @property
    def channel_status(self) -> int:
        """The state of the channel's socket, see `windtunnel.driver.client.channel_status`."""
        return channel_status.status(self._conductor.counters, self)

    @property
    def local_socket_addresses(self) -> list[str]:
        """Where the stream is received, `address:port`; empty while that is not known."""
        return channel_status.local_addresses(self._conductor.counters, self)

    @property
    def resolved_endpoint(self) -> str | None:
        """The first of the local addresses; None while it is not known."""
        addresses = self.local_socket_addresses
        return addresses[0] if addresses else None

    def try_resolve_channel_endpoint_port(self) -> str | None:
        """The channel with the port that was found for an endpoint of port 0.

        Returns: None while it is not known; the channel as it is where it has no such endpoint
        """
        return channel_status.resolved_channel(self._conductor.counters, self)

    def reject_image(self, image_correlation_id: int, position: int, reason: str) -> None:
        """Refuse a session, see `Image.reject`. Raises ValueError for too long a reason."""
        self.require_open()
        length = len(reason.encode("utf-8", "replace"))
        if length > REASON_LENGTH_MAX:
            raise ValueError(f"reason has {length} bytes, but may have {REASON_LENGTH_MAX}")
        conductor = self._conductor
        conductor.wait(
            conductor.ask(
                lambda new: RejectImage(
                    conductor.client_id, new, image_correlation_id, position, reason
                )
            )
        )

    def close(self) -> None:
        """Stop reading; the driver forgets this reader. May be called again.

        Raises ReentrantCallError in a callback of the client's conductor
        """
        if not self.is_closed:
            self._conductor.release_subscription(self)

    def add_image(self, image: Image) -> None:
        """For the client's conductor: a session became available."""
        self.images = (*self.images, image)

    def remove_image(self, correlation_id: int) -> Image | None:
        """For the client's conductor: a session is gone; it can still be asked how far it was."""
        image = next((item for item in self.images if item.correlation_id == correlation_id), None)
        if image is not None:
            self.images = tuple(item for item in self.images if item is not image)
        return image

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
