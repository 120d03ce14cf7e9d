"""The static window: what was configured, but never more than half a term."""

import pytest

from driver.media_driver import congestion_control, publication_image


@pytest.mark.parametrize(
    ("configured", "term_length", "window"),
    [
        (131_072, 65_536, 32_768),
        (131_072, 1 << 20, 131_072),
        (1408, 65_536, 1408),
        (32_768, 65_536, 32_768),
        (32_800, 65_536, 32_768),
    ],
)
def test_half_a_term_is_the_most(configured, term_length, window):
    assert congestion_control.initial_window(configured, term_length) == window


def test_a_static_window_never_changes_and_never_forces():
    records, _ = publication_image.make_images(1)
    records[0].window_max = 4096
    for is_new_loss in (False, True):
        told = congestion_control.on_track_rebuild(records[0], 5, 0, 64, 32, 32, is_new_loss)
        assert told == (4096, False)
