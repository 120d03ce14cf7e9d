"""The offer of one message as a Python method in machine code.

    offer(message) -> position or result code       as `Publication.offer`

It writes a whole message without a reserved value from any contiguous bytes-like object of up to
LENGTH_MAX bytes. All other calls, and calls once the publication is closed, are passed on to a
fallback: the offer in Python.

Nothing else runs between the check that the publication is open and the end of the write, because
the GIL is held. The log stays mapped meanwhile, because the method has a reference to the state,
and the state has one to the log's array.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from windtunnel.driver.base import python_api as api
from windtunnel.driver.base.atomics import address_of, bytes_at, get_i64, get_i64_acquire, get_u8
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.kernels.native_object import integer_fields, offset_of
from windtunnel.driver.kernels.python_method import python_method
from windtunnel.driver.logbuffer import appender, frame, tail
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.driver.logbuffer.appender import APPENDER
from windtunnel.driver.wire import frame_type

LENGTH_MAX = 1 << 16
"""Longest message in bytes that is written with the GIL held, which takes about 10 us."""

_FIELDS = (
    *("log_address", "log_length", "appender_address", "limit_address", "is_closed"),
    "array_type",  # address of the type of numpy arrays
)
_SLOTS = ("arrays", "fallback")
LOG_ADDRESS, LOG_LENGTH, APPENDER_ADDRESS, LIMIT_ADDRESS, IS_CLOSED, ARRAY_TYPE = (
    offset_of(_FIELDS, each) for each in _FIELDS
)
FALLBACK = offset_of((*_FIELDS, *_SLOTS), "fallback")
_LENGTH = FALLBACK + 8
_OBJECT = ord("O")
UNFRAGMENTED = frame_type.BEGIN | frame_type.END
LEFT, FAILED = -100, -101
"""Outcomes of a write that is left to the fallback, or failed with an exception. No codes of
`publication_result` have these values.
"""


_Fields: Any = integer_fields("OfferFields", _FIELDS)


class OfferState(_Fields):  # type: ignore[misc]  # a type that is made at run time
    """The addresses to which a publication writes, and the arrays that keep them valid."""

    __slots__ = _SLOTS
    is_closed: int

    def __init__(
        self,
        log: np.ndarray,
        state: np.ndarray,
        values: np.ndarray,
        limit_at: int,
        fallback: Callable[..., int],
    ) -> None:
        super().__init__()
        self.arrays: tuple[np.ndarray, ...] = log, state, values
        self.fallback: Callable[..., int] | None = fallback
        self.log_address, self.log_length = address_of(log), log.size
        self.appender_address = address_of(state)
        self.limit_address = address_of(values) + limit_at
        self.array_type = id(np.ndarray)

    def close(self) -> None:
        """Let all later calls return CLOSED, and release the arrays."""
        self.is_closed = 1
        self.arrays, self.fallback = (), None


@kernel
def has_objects(text):
    """Return whether a buffer's format string may name Python objects, whose addresses are no
    message.
    """
    at = 0
    code = get_u8(bytes_at(text, 1), 0)
    while code != 0 and code != _OBJECT:
        at += 1
        code = get_u8(bytes_at(text + at, 1), 0)
    return code == _OBJECT


@kernel
def take_bytes(message, array_type, buffer):
    """Get the bytes of a message as the `Py_buffer` at the address `buffer`.

    Returns: 1, or 0 if they must be converted in Python, or -1 after an exception was set
    """
    kind = api.type_of(message)
    is_plain = (
        kind == api.bytes_type() or kind == api.bytearray_type() or kind == api.memoryview_type()
    )
    is_array = not is_plain and api.is_subtype(kind, array_type) != 0
    if api.get_buffer(message, buffer, api.FORMAT if is_array else api.SIMPLE) != 0:
        if (
            api.is_error(api.buffer_error())
            or api.is_error(api.value_error())
            or api.is_error(api.type_error())
        ):
            api.clear_error()
            return 0
        return -1
    view = bytes_at(buffer, api.BUFFER_LENGTH)
    text = get_i64(view, api.BUFFER_FORMAT)
    if get_i64(view, api.BUFFER_BYTES) > LENGTH_MAX or (
        is_array and text != 0 and has_objects(text)
    ):
        api.release_buffer(buffer)
        return 0
    return 1


@kernel
def write(fields, source, length):
    """Write a message of `length` bytes in `source`. Returns the position after it, or a code."""
    log = bytes_at(get_i64(fields, LOG_ADDRESS), get_i64(fields, LOG_LENGTH))
    limit = get_i64_acquire(bytes_at(get_i64(fields, LIMIT_ADDRESS), 8), 0)
    writer = api.record_at(get_i64(fields, APPENDER_ADDRESS), APPENDER)
    state = writer[0]
    if length > state.max_payload_length:
        return appender.offer(writer, log, limit, source, 0, length, 0)
    framed = frame.aligned(length + frame.HEADER_LENGTH)
    outcome, at, term_id, term_offset = tail.claim(writer, log, limit, framed, length)
    if outcome > 0:
        appender.write_frame(
            log, at, state.meta_at, term_id, term_offset, UNFRAGMENTED, source, 0, length, 0
        )
    return outcome


@kernel
def write_buffer(fields, message, buffer):
    """Write a message from its buffer, in the `Py_buffer` at the address `buffer`.

    Returns: the position after it, a code, LEFT or FAILED
    """
    taken = take_bytes(message, get_i64(fields, ARRAY_TYPE), buffer)
    if taken <= 0:
        return LEFT if taken == 0 else FAILED
    outcome = LEFT
    # Only now, because an object's code for its buffer may have closed the publication.
    if get_i64(fields, IS_CLOSED) == 0:
        view = bytes_at(buffer, api.BUFFER_LENGTH)
        length = get_i64(view, api.BUFFER_BYTES)
        outcome = write(fields, bytes_at(get_i64(view, api.BUFFER_ADDRESS), length), length)
    api.release_buffer(buffer)
    return outcome


@python_method
def offer(state, arguments, count, names):
    fields = bytes_at(state, _LENGTH)
    outcome = LEFT
    buffer = api.buffer_space()
    if count == 1 and names == 0 and get_i64(fields, IS_CLOSED) == 0:
        message = get_i64(bytes_at(arguments, 8), 0)
        if api.type_of(message) == api.bytes_type():
            length = get_i64(bytes_at(message, api.BYTES_CONTENT), api.BYTES_LENGTH)
            if length <= LENGTH_MAX:
                outcome = write(fields, bytes_at(message + api.BYTES_CONTENT, length), length)
        else:
            outcome = write_buffer(fields, message, buffer)
    if outcome == LEFT:
        fallback = get_i64(fields, FALLBACK)
        if fallback == api.none():
            return api.int_of(result.CLOSED)
        return api.pass_on(fallback, arguments, count, names)
    if outcome == FAILED:
        return 0
    if outcome < 0:
        api.let_others_run()
    return api.int_of(outcome)
