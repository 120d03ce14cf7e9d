"""Stops a subscriber before endless data from a defective driver fills the disk.

A driver that does not clean its terms delivers old frames again and again, as fast as they can be
written. In a simulation this takes no virtual time, so no time budget would end it.
"""

from windtunnel.driver.client.image.image import Image
from windtunnel.harness.workload.stop import SubjectError

FRAMED_BYTES_MAX = 64
"""Maximum log bytes per stream byte: a one-byte message with its header and alignment."""
PADDED_TIMES = 2
"""Maximum factor by which padding at the ends of terms can increase the length."""
SLACK_BYTES = 16 << 20


def length_max(total_bytes: int) -> int:
    """Return the maximum number of log bytes of a stream whose messages have `total_bytes` in
    total.
    """
    return SLACK_BYTES + PADDED_TIMES * FRAMED_BYTES_MAX * total_bytes


def check(image: Image, length_bytes_max: int) -> None:
    """Raise SubjectError if more was read from an image than its stream can contain."""
    length_bytes = image.position - image.join_position
    if length_bytes > length_bytes_max:
        raise SubjectError(
            f"the image was read from {image.join_position} to {image.position}: expected at most "
            f"{length_bytes_max} bytes, found {length_bytes}"
        )
