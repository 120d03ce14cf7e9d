"""Stops a reader that a defective driver feeds forever, before it fills the disk.

A driver that does not clean its terms delivers old frames again and again, as fast as they can be
written; on virtual time even within one instant, so that no time budget ends it.
"""

from windtunnel.driver.client.image.image import Image
from windtunnel.harness.workload.stop import SubjectError

FRAMED_BYTES_MAX = 64
"""Per byte of a stream: a message of one byte, its header, and its alignment."""
PADDED_TIMES = 2
"""Upper bound of the growth by padding at the ends of terms."""
SLACK_BYTES = 16 << 20


def length_max(total_bytes: int) -> int:
    """The number of log bytes that a stream of this many bytes can never exceed."""
    return SLACK_BYTES + PADDED_TIMES * FRAMED_BYTES_MAX * total_bytes


def check(image: Image, length_bytes_max: int) -> None:
    """Raise SubjectError if an image was read farther than its stream can reach."""
    length_bytes = image.position - image.join_position
    if length_bytes > length_bytes_max:
        raise SubjectError(
            f"the image was read from {image.join_position} to {image.position}: expected at most "
            f"{length_bytes_max} bytes, found {length_bytes}"
        )
