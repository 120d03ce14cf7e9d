"""The layout of a memoryview is checked at run time."""

import pytest

from windtunnel.driver.client.image import payload_view
from windtunnel.driver.client.image.payload_view import NEVER_MOVED, movable_flags
from windtunnel.driver.kernels.python_method import IS_AVAILABLE

pytestmark = pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")

OFFSETS = [
    *("_REFERENCES", "_HASH", "_FLAGS", "_EXPORTS", "_ADDRESS", "_LENGTH", "_ITEM_SIZE"),
    *("_DIMENSIONS", "_SHAPE", "_WEAK_REFERENCES", "_FIRST_SHAPE"),
]


def test_this_version_has_the_known_layout():
    assert movable_flags() != NEVER_MOVED


@pytest.mark.parametrize("name", OFFSETS)
def test_views_are_never_moved_in_another_layout(monkeypatch, name):
    monkeypatch.setattr(payload_view, name, 0 if name == "_EXPORTS" else 24)
    assert movable_flags() == NEVER_MOVED
