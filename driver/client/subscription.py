"""Subscriptions, which read a stream from all its publishers.

The images are an immutable tuple that the client conductor replaces as a whole, so a poll never
reads a partial change. Each poll starts with the next image, so a busy image cannot starve other
images. Source: Aeron 1.53, C client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from windtunnel.driver.base.atomics import put_i64_release
from windtunnel.driver.client import channel_status
from windtunnel.driver.client.conductor_protocol import Conductor
from windtunnel.driver.client.destinations import ReceiveDestinations
from windtunnel.driver.client.handlers import AvailableImageHandler, UnavailableImageHandler
from windtunnel.driver.client.image import native_poll
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.image.fragment_handlers import (
    BlockHandler,
    ControlledHandler,
    FragmentHandler,
    RawBlockHandler,
)
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.image.native_poll import NO_LIMIT
from windtunnel.driver.client.stored_kernels import load_stored
from windtunnel.driver.command.image import RejectImage
from windtunnel.driver.kernels.python_method import replace_methods
from windtunnel.driver.logbuffer import position as positions
from windtunnel.driver.logbuffer import reader

REASON_LENGTH_MAX = 1023
_NATIVE = {"poll": native_poll.poll_only, "controlled_poll": native_poll.controlled_poll_only}
"""The methods that have an equivalent in machine code, for a single image."""


class SubscriptionConductor(Conductor, Protocol):
    """The client conductor's interface for subscriptions."""

    def release_subscription(self, subscription: Subscription) -> None:
        """Close the subscription and remove it from the driver."""


class Subscription(ReceiveDestinations):
    """Reads a stream. Only one thread at a time may poll it."""

    _conductor: SubscriptionConductor

    def __init__(
        self,
        conductor: SubscriptionConductor,
        *,
        channel: str,
        stream_id: int,
        registration_id: int,
        channel_status_id: int = -1,
        on_available_image: AvailableImageHandler | None = None,
        on_unavailable_image: UnavailableImageHandler | None = None,
    ) -> None:
        self._conductor = conductor
        self.channel = channel
        self.stream_id = stream_id
        self.registration_id = registration_id
        self.channel_status_id = channel_status_id
        self._images: tuple[Image, ...] = ()
        self._native_state = native_poll.SubscriptionState(
            self._poll_in_python, self._controlled_poll_in_python
        )
        self._round_robin = 0
        self.on_available_image = on_available_image
        self.on_unavailable_image = on_unavailable_image
        self.is_closed = False
        for each in (positions.index, reader.poll, reader.poll_frames, put_i64_release):
            load_stored(each)
        for method in (native_poll.poll, native_poll.controlled_poll):
            method.load_stored()
        self._replace_polls(is_compiled=False)

    @property
    def images(self) -> tuple[Image, ...]:
        """The images that are available now, one for each session."""
        return self._images

    @images.setter
    def images(self, images: tuple[Image, ...]) -> None:
        self._images = images
        self._set_reader()

    def _set_reader(self) -> None:
        """Let the native polls read the only image, if it has native polls."""
        images: tuple[Image, ...] | None = None
        # Another thread may add an image meanwhile, which would never be read.
        while images is not self._images:
            images = self._images
            self._native_state.reader = images[0].native_state if len(images) == 1 else None

    def _replace_polls(self, *, is_compiled: bool) -> None:
        """Replace polls of this object by the same functions in machine code."""
        replace_methods(self, Subscription, _NATIVE, self._native_state, is_compiled=is_compiled)

    def __iter__(self) -> Iterator[Image]:
        return iter(self.images)

    @property
    def is_connected(self) -> bool:
        """Whether the subscription has an open image."""
        return any(not image.is_closed for image in self.images)

    @property
    def image_count(self) -> int:
        """The number of images that are available now."""
        return len(self.images)

    def image_at_index(self, index: int) -> Image:
        """Return the image at `index`, where index 0 is the oldest image. Raises IndexError if
        there is no such image.
        """
        return self.images[index]

    def image_by_session_id(self, session_id: int) -> Image | None:
        """Return the image of a session, or None if the session has no image."""
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
        """Call `handler` for up to `fragment_limit` fragments.

        Returns the number of fragments, or 0 if the subscription is closed.
        """
        if "poll" not in vars(self):
            self._replace_polls(is_compiled=True)
        return self._poll_in_python(handler, fragment_limit)

    def _poll_in_python(self, handler: FragmentHandler, fragment_limit: int = 10) -> int:
        self._set_reader()
        return self._poll_in_turn(fragment_limit, lambda image, left: image.poll(handler, left))

    def controlled_poll(self, handler: ControlledHandler, fragment_limit: int = 10) -> int:
        """Poll like `poll`, but with a handler that returns an Action for each fragment."""
        if "controlled_poll" not in vars(self):
            self._replace_polls(is_compiled=True)
        return self._controlled_poll_in_python(handler, fragment_limit)

    def _controlled_poll_in_python(
        self, handler: ControlledHandler, fragment_limit: int = 10
    ) -> int:
        self._set_reader()
        return self._poll_in_turn(
            fragment_limit, lambda image, left: image.controlled_poll(handler, left)
        )

    def poll_batch(self, batch: FragmentBatch, fragment_limit: int = NO_LIMIT) -> int:
        """Clear the batch and copy fragments into it. Returns the number of fragments."""
        batch.clear()
        return self._poll_in_turn(fragment_limit, lambda image, left: image.poll_batch(batch, left))

    def poll_kernel(
        self, handler: Callable[..., Any], state: Any, fragment_limit: int = NO_LIMIT
    ) -> int:
        """Call a compiled handler for each fragment (see `Image.poll_kernel`).

        Returns the number of fragments.
        """
        return self._poll_in_turn(
            fragment_limit, lambda image, left: image.poll_kernel(handler, state, left)
        )

    def block_poll(self, handler: BlockHandler, block_length_limit: int) -> int:
        """For each image, call `handler` with one block of whole frames. Returns the total number
        of bytes.
        """
        return sum(image.block_poll(handler, block_length_limit) for image in self.images)

    def raw_poll(self, handler: RawBlockHandler, block_length_limit: int) -> int:
        """For each image, call `handler` with the location of one block of whole frames in the log
        file.

        Returns the number of consumed bytes.
        """
        return sum(image.raw_poll(handler, block_length_limit) for image in self.images)

    @property
    def channel_status(self) -> int:
        """The status of the channel's socket (see `windtunnel.driver.client.channel_status`)."""
        return channel_status.status(self._conductor.counters, self)

    @property
    def local_socket_addresses(self) -> list[str]:
        """The local addresses of the subscription as `address:port`. The list is empty until they
        are known.
        """
        return channel_status.local_addresses(self._conductor.counters, self)

    @property
    def resolved_endpoint(self) -> str | None:
        """The first local address, or None while it is unknown."""
        addresses = self.local_socket_addresses
        return addresses[0] if addresses else None

    def try_resolve_channel_endpoint_port(self) -> str | None:
        """Return the channel with its endpoint's port 0 replaced by the port that the system chose.

        Returns None while the port is unknown, or the unchanged channel if its port is not 0.
        """
        return channel_status.resolved_channel(self._conductor.counters, self)

    def reject_image(self, image_correlation_id: int, position: int, reason: str) -> None:
        """Reject an image and send the reason to its publisher (see `Image.reject`).

        Raises TypeError if the reason is no string, and ValueError if it is longer than
        REASON_LENGTH_MAX bytes.
        """
        self._conductor.commands.wait(
            self._send_reject(image_correlation_id, position, reason, is_collected=True)
        )

    def async_reject_image(self, image_correlation_id: int, position: int, reason: str) -> int:
        """Reject an image without waiting for the response. Returns the command's correlation id.

        An error of the driver is passed to the error handler. Raises TypeError and ValueError like
        `reject_image`.
        """
        return self._send_reject(image_correlation_id, position, reason, is_collected=False)

    def _send_reject(
        self, image_correlation_id: int, position: int, reason: str, *, is_collected: bool
    ) -> int:
        self.require_open()
        if not isinstance(reason, str):
            raise TypeError(f"reason: expected a str, found {type(reason).__name__}")
        length = len(reason.encode("utf-8", "replace"))
        if length > REASON_LENGTH_MAX:
            raise ValueError(f"reason has {length} bytes, expected at most {REASON_LENGTH_MAX}")
        commands = self._conductor.commands
        return commands.send_command(
            lambda correlation_id: RejectImage(
                commands.client_id, correlation_id, image_correlation_id, position, reason
            ),
            is_collected=is_collected,
        )

    def close(self) -> None:
        """Close the subscription and its images. Closing it again has no effect.

        Raises ReentrantCallError if a handler of the client conductor calls it.
        """
        if not self.is_closed:
            self._conductor.release_subscription(self)

    def add_image(self, image: Image) -> None:
        """Add an image that became available. Called by the client conductor."""
        self.images = (*self.images, image)

    def remove_image(self, correlation_id: int) -> Image | None:
        """Remove and return an image that became unavailable. Called by the client conductor.

        The image keeps its final position.
        """
        image = next((item for item in self.images if item.correlation_id == correlation_id), None)
        if image is not None:
            self.images = tuple(item for item in self.images if item is not image)
        return image

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
