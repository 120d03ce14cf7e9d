"""How large a window a receiver offers: a strategy of each image, asked in every conductor turn.

STATIC offers the same window always. Source: spec 3.6, Aeron 1.53.
"""

from driver.base.jit import kernel

STATIC = 0


@kernel
def initial_window(window_length, term_length):
    """The window of an image: what was configured, but never more than half a term."""
    return min(window_length, term_length // 2)


@kernel
def on_track_rebuild(image, now_ns, lowest, hwm, rebuild, rebuilt, is_new_loss):
    """Returns: (window in bytes, whether a status message must leave now)."""
    return image.window_max, False
