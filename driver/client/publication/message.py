"""The type of messages that can be offered: any bytes-like object."""

import numpy as np

Message = bytes | bytearray | memoryview | np.ndarray


def as_bytes(message: Message) -> np.ndarray:
    """Return a bytes-like object as uint8[n], copied only if it is not contiguous."""
    if isinstance(message, np.ndarray):
        return np.ascontiguousarray(message).reshape(-1).view(np.uint8)
    if isinstance(message, memoryview) and not message.c_contiguous:
        message = message.tobytes()
    return np.frombuffer(message, np.uint8)
