"""The types of the handlers that receive fragments, frames and blocks of a log."""

import io
from collections.abc import Callable

from windtunnel.driver.client.image.header import Action, Header

FragmentHandler = Callable[[memoryview, Header], object]
"""Handler that is called with (payload, header). Both are valid only until the handler returns."""
ControlledHandler = Callable[[memoryview, Header], Action | None]
"""Handler that is called with (payload, header). It returns an Action, or None for CONTINUE."""
FrameHandler = Callable[[int, memoryview], object]
"""Handler that is called with (position of the frame's first byte, frame)."""
BlockHandler = Callable[[memoryview, int, int, int], object]
"""Handler that is called with (block of whole frames, session id, term id, position)."""
RawBlockHandler = Callable[[io.FileIO, int, int, int, int], object]
"""Handler that is called with a block's place in the log file: (file, offset, length, session id,
term id)."""
