"""A reader that a defective driver feeds for ever stops, before it fills the disk.

A driver that does not clean its terms hands out old frames again and again, as fast as they can be
written down; on virtual time even within one instant, so that no budget of time ends it.
"""

from windtunnel.driver.client.image.image import Image
from windtunnel.harness.workload.stop import SubjectError

FRAMED_BYTES_MAX = 64
"""Of a stream a byte: a message of one byte, its header, and what aligns it."""
PADDED_TIMES = 2
"""At most, through padding at the ends of terms."""
SLACK_BYTES = 16 << 20


def length_max(total_bytes: int) -> int:
    """Bytes of log that a stream of so many bytes can never take."""
    return SLACK_BYTES + PADDED_TIMES * FRAMED_BYTES_MAX * total_bytes


def check(image: Image, length_bytes_max: int) -> None:
    """Raise SubjectError when an image was read farther than its stream can reach."""
    length_bytes = image.position - image.join_position
    if length_bytes > length_bytes_max:
        raise SubjectError(
            f"the image was read from {image.join_position} to {image.position}: {length_bytes} "
            f"bytes, where the whole stream takes at most {length_bytes_max}"
        )
