"""A new process loads the kernels of its first offer and its first poll before it needs them."""

import subprocess
import sys

import pytest

from tests.unit.driver.client.own_stream import OwnStream
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.driver.kernels.python_method import IS_AVAILABLE
from windtunnel.driver.kernels.sources import SOURCE_ROOT

SCRIPT = """
import sys
from pathlib import Path
from tests.unit.driver.client.test_stored_kernels import used_kernels
print([each.__qualname__ for each in used_kernels(Path(sys.argv[1])) if not each.signatures])
"""


def used_kernels(folder):
    """Create a publication and a subscription, and return the kernels of their first messages."""
    from windtunnel.driver.base.atomics import put_i64_release
    from windtunnel.driver.client.publication.publication import _offer
    from windtunnel.driver.logbuffer import position, reader

    OwnStream(folder)
    Subscription(None, channel="own", stream_id=1, registration_id=9)
    return _offer, position.index, reader.poll, reader.poll_frames, put_i64_release


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled without the JIT")
def test_kernels_are_loaded_before_the_first_message(tmp_path):
    stream = OwnStream(tmp_path)
    # In Python: the methods in machine code need no other kernel, and another test may have stored
    # them already.
    assert stream.publication._offer_in_python(b"stored by this process") > 0
    assert stream.image.bounded_poll(lambda payload, header: None, 1 << 40) == 1
    stream.image.poll_frames(lambda position, frame: None, 1)
    folder = tmp_path / "other"
    folder.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    found = subprocess.run(command, cwd=SOURCE_ROOT, capture_output=True, text=True, timeout=120)
    assert found.stdout == "[]\n", found.stderr


METHODS_SCRIPT = """
import sys
from windtunnel.driver.client.publication.native_offer import offer
from windtunnel.driver.client.image.native_poll import controlled_poll, poll, poll_only
print([each.bind_stored(1) is not None for each in (offer, poll, controlled_poll, poll_only)])
print("numba" in sys.modules)
"""


@pytest.mark.skipif(not IS_AVAILABLE, reason="no machine code here")
def test_stored_methods_are_loaded_without_numba():
    from windtunnel.driver.client.image.native_poll import controlled_poll, poll, poll_only
    from windtunnel.driver.client.publication.native_offer import offer

    for each in (offer, poll, controlled_poll, poll_only):
        each.bind(1)
    command = [sys.executable, "-c", METHODS_SCRIPT]
    found = subprocess.run(command, cwd=SOURCE_ROOT, capture_output=True, text=True, timeout=120)
    assert found.stdout == "[True, True, True, True]\nFalse\n", found.stderr
