"""What can be offered: anything that is bytes."""

import numpy as np

Message = bytes | bytearray | memoryview | np.ndarray


def as_bytes(message: Message) -> np.ndarray:
    """Any bytes-like object as uint8[n], without copying; what is not contiguous is copied."""
    if isinstance(message, np.ndarray):
        return np.ascontiguousarray(message).reshape(-1).view(np.uint8)
    if isinstance(message, memoryview) and not message.c_contiguous:
        message = message.tobytes()
    return np.frombuffer(message, np.uint8)
