"""Reading a stream: all its sessions in turn.

The images are an immutable tuple that the client's conductor replaces as a whole, so that a poll
never sees a list in the middle of a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from driver.client.image import BlockHandler, FragmentHandler, Image

if TYPE_CHECKING:
    from driver.client.conductor import ClientConductor

ImageHandler = Callable[[Image], None]


class Subscription:
    """One end of a stream, for reading; polled by one thread at a time."""

    def __init__(
        self,
        conductor: ClientConductor,
        *,
        channel: str,
        stream_id: int,
        registration_id: int,
        on_available_image: ImageHandler | None = None,
        on_unavailable_image: ImageHandler | None = None,
    ) -> None:
        self._conductor = conductor
        self.channel = channel
        self.stream_id = stream_id
        self.registration_id = registration_id
        self.channel_status_id = -1
        self.images: tuple[Image, ...] = ()
        """The sessions that can be read now."""
        self._round_robin = 0
        self._on_available_image = on_available_image
        self._on_unavailable_image = on_unavailable_image
        self.is_closed = False

    def __iter__(self) -> Iterator[Image]:
        return iter(self.images)

    @property
    def is_connected(self) -> bool:
        """Whether any session can be read."""
        return any(not image.is_closed for image in self.images)

    def image_by_session_id(self, session_id: int) -> Image | None:
        """The image of one session, or None."""
        return next((item for item in self.images if item.session_id == session_id), None)

    def poll(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        """Hand out up to `fragment_limit` fragments, a different session first each time."""
        images = self.images
        if not images:
            return 0
        self._round_robin = (self._round_robin + 1) % len(images)
        count = 0
        for step in range(len(images)):
            image = images[(self._round_robin + step) % len(images)]
            count += image.poll(handler, fragment_limit - count)
            if count >= fragment_limit:
                break
        return count

    def block_poll(self, handler: BlockHandler, block_length_limit: int) -> int:
        """Hand out runs of whole frames, one of each session. Returns the bytes passed."""
        return sum(image.block_poll(handler, block_length_limit) for image in self.images)

    def close(self) -> None:
        """Stop reading; the driver forgets this reader."""
        if not self.is_closed:
            self.is_closed = True
            self._conductor.release_subscription(self)

    def add_image(self, image: Image) -> None:
        """For the client's conductor: a session became available."""
        self.images = (*self.images, image)
        if self._on_available_image is not None:
            self._on_available_image(image)

    def remove_image(self, correlation_id: int) -> Image | None:
        """For the client's conductor: a session is gone."""
        image = next((item for item in self.images if item.correlation_id == correlation_id), None)
        if image is not None:
            self.images = tuple(item for item in self.images if item is not image)
            image.on_unavailable()
            if self._on_unavailable_image is not None:
                self._on_unavailable_image(image)
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
