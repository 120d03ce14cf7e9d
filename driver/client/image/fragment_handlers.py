"""Types of the callables that receive fragments, frames and blocks of a log."""

import io
from collections.abc import Callable

from windtunnel.driver.client.image.header import Action, Header

FragmentHandler = Callable[[memoryview, Header], object]
"""Called with (payload, header); both are valid only during the call."""
ControlledHandler = Callable[[memoryview, Header], Action | None]
"""Called with (payload, header); returns the Action to take, None for CONTINUE."""
FrameHandler = Callable[[int, memoryview], object]
"""Called with (position of the frame's first byte, frame)."""
BlockHandler = Callable[[memoryview, int, int, int], object]
"""Called with (block, session id, term id, position)."""
RawBlockHandler = Callable[[io.FileIO, int, int, int, int], object]
"""Called with (file, file offset, length, session id, term id)."""
