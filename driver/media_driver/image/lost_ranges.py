"""The lost ranges of an image that the conductor passes to the receiver in one turn.

    conductor   | range 0 | range 1 | ... |  ---- end_loss_change (release) --->  receiver
                       up to RANGES_MAX      <--- last_loss_change (release) ----

The receiver owns the ranges from the time at which their change number is published until it
publishes the same number. The conductor writes none in between, so both always see whole ranges.
Images with one active gap use the block of `publication_image.publish_loss` instead.
"""

import numpy as np

from windtunnel.driver.kernels.jit import kernel

RANGES_MAX = 64
"""Maximum number of ranges passed at once: as many NAKs as leave in one system call."""

LOST_RANGE = np.dtype(
    (
        np.record,
        [
            ("term_id", "i8"),
            ("offset", "i8"),
            ("length", "i8"),
            ("is_new", "i8"),  # it was not passed before
        ],
    )
)


def make_lost_ranges(images: int) -> np.recarray:
    """Create the lost ranges of all images: an array LOST_RANGE[images, RANGES_MAX]."""
    return np.zeros((images, RANGES_MAX), dtype=LOST_RANGE).view(np.recarray)


@kernel
def put_active_gap(ranges, index, image):
    """Set a lost range to the active gap of an image."""
    lost = ranges[index]
    lost.term_id = image.gap_term_id
    lost.offset = image.gap_offset
    lost.length = image.gap_length
    lost.is_new = int(image.gap_naks == 1)
