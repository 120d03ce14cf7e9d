"""Congestion control strategies, which compute an image's receiver window in each duty cycle.

STATIC has a constant window. CUBIC adapts its window to losses (see `cubic`). The round-trip time
is measured only if the strategy uses it. Source: spec 3.6, Aeron 1.53.
"""

from windtunnel.driver.cnc import counters
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.image import cubic, publication_image

STATIC = 0
CUBIC = 1


@kernel
def initial_window(window_length, term_length):
    """Return the initial window of an image in bytes, at most half a term."""
    return min(window_length, term_length // 2)


@kernel
def on_track_rebuild(state, slot, now_ns, lowest, is_new_loss):
    """Compute the current window of an image. Called by the conductor.

    Returns: (window in bytes, whether a status message must be sent immediately)
    """
    image = state.images[slot]
    if image.congestion_control == STATIC:
        return image.window_max, False
    rtt_ns = publication_image.shared_acquire(state.image_words, slot, publication_image.RTT_NS)
    return cubic.on_track_rebuild(image, state.counters, rtt_ns, now_ns, lowest, is_new_loss)


@kernel
def should_measure_rtt(image, now_ns):
    """Return whether a round-trip measurement is due. Called by the receiver."""
    if image.rtt_is_measured == 0:
        return False
    return now_ns - image.last_rtt_ns > image.rtt_timeout_ns


@kernel
def on_rtt(state, slot, now_ns, rtt_ns):
    """Process a round-trip measurement, unless its value is implausible. Called by the receiver."""
    image = state.images[slot]
    if image.congestion_control == STATIC or rtt_ns < 0 or rtt_ns > cubic.RTT_MAX_NS:
        return
    image.last_rtt_ns = now_ns
    image.rtt_timeout_ns = max(rtt_ns, image.rtt_min_ns) * cubic.RTT_TIMEOUT_MULTIPLE
    counters.set_release(state.counters, image.rtt_id, rtt_ns)
    publication_image.set_shared_release(state.words, slot, publication_image.RTT_NS, rtt_ns)
