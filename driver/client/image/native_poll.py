"""The polls of an image as Python methods in machine code.

    poll(handler[, fragment_limit]) -> number of fragments        as `FragmentReader.poll`
    controlled_poll(handler[, fragment_limit])

    per fragment   read the frame -> header, payload view -> handler -> is the image closed?

    poll_only(handler[, fragment_limit])            as `Subscription.poll`
    controlled_poll_only(handler[, fragment_limit])

The last two poll the only image of a subscription. Calls with other arguments, calls once the image
is closed, and calls for other numbers of images are passed on to a fallback: the poll in Python.

The frame length is read once. So a writer that changes it afterwards cannot move a payload beyond
its term. The log stays mapped while a poll runs, because the poll has a reference to the view of
the log. A poll inside a handler uses a payload view of its own, but the same header.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from windtunnel.driver.base import python_api as api
from windtunnel.driver.base.atomics import (
    address_of,
    bytes_at,
    get_i32,
    get_i64,
    put_i64,
    put_i64_release,
)
from windtunnel.driver.client.image import payload_view
from windtunnel.driver.client.image.header import FIELDS as HEADER_FIELDS
from windtunnel.driver.client.image.header import Action, Header
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.kernels.native_object import integer_fields, offset_of
from windtunnel.driver.kernels.python_method import python_method
from windtunnel.driver.logbuffer import frame
from windtunnel.driver.logbuffer import position as positions
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.wire import data
from windtunnel.driver.wire import frame_type as types

_FIELDS = (
    *("log_address", "log_length", "term_length", "bits", "counter_address"),
    *("position", "is_closed", "header_address", "movable_flags"),
    *("abort", "stop", "commit"),  # addresses of actions
)
(
    LOG_ADDRESS, LOG_LENGTH, TERM_LENGTH, BITS, COUNTER_ADDRESS, POSITION, IS_CLOSED,
    HEADER_ADDRESS, MOVABLE_FLAGS, ABORT, BREAK, COMMIT,
) = (offset_of(_FIELDS, each) for each in _FIELDS)  # fmt: skip
_SLOTS = ("arrays", "controlled_fallback", "fallback", "header", "spare", "whole")
_, CONTROLLED_FALLBACK, FALLBACK, _, SPARE, WHOLE = (
    offset_of((*_FIELDS, *_SLOTS), each) for each in _SLOTS
)
_LENGTH = offset_of((*_FIELDS, *_SLOTS), "whole") + 8

(
    HEADER_POSITION, HEADER_FLAGS, HEADER_FRAME_TYPE, HEADER_SESSION_ID, HEADER_STREAM_ID,
    HEADER_TERM_ID, HEADER_TERM_OFFSET, HEADER_RESERVED_VALUE,
) = (offset_of(HEADER_FIELDS, each) for each in HEADER_FIELDS)  # fmt: skip
_HEADER_END = offset_of(HEADER_FIELDS, HEADER_FIELDS[-1]) + 8

DEFAULT_LIMIT = 10
NO_LIMIT = (1 << 63) - 1
_SUBSCRIPTION_SLOTS = ("controlled_fallback", "fallback", "reader")
ONLY_CONTROLLED_FALLBACK, ONLY_FALLBACK, READER = (
    offset_of(_SUBSCRIPTION_SLOTS, each) for each in _SUBSCRIPTION_SLOTS
)
_MOVABLE_FLAGS = payload_view.movable_flags()
FAILED = -1
DELIVERED, STOPPED, ABORTED = 0, 1, 2


_Fields: Any = integer_fields("ReaderFields", _FIELDS)


class ReaderState(_Fields):  # type: ignore[misc]  # a type that is made at run time
    """The position of a reader, and what its native polls need: the addresses of its log and its
    counter, its header and its payload view.
    """

    __slots__ = _SLOTS
    position: int
    """The stream position up to which the reader has read."""
    is_closed: int
    spare: memoryview | None
    """The payload view of the last fragment. Not set while a poll uses it."""

    def __init__(self, log: LogBuffer, whole: memoryview, values: np.ndarray, at: int) -> None:
        """`whole` is a view of the log. The position counter is at the offset `at` of `values`."""
        super().__init__()
        self.arrays: tuple[np.ndarray, ...] = log.log, values
        self.whole: memoryview | None = whole
        self.fallback: Callable[..., int] | None = None
        self.controlled_fallback: Callable[..., int] | None = None
        self.log_address, self.log_length = address_of(log.log), log.log.size
        self.term_length, self.bits = log.term_length, log.bits
        self.counter_address = address_of(values) + at
        self.movable_flags = _MOVABLE_FLAGS
        self.abort, self.stop, self.commit = id(Action.ABORT), id(Action.BREAK), id(Action.COMMIT)

    def use(
        self,
        header: Header,
        fallback: Callable[..., int] | None = None,
        controlled_fallback: Callable[..., int] | None = None,
    ) -> None:
        """Set the header that the native polls fill, and the polls in Python."""
        self.header, self.header_address = header, id(header)
        self.fallback, self.controlled_fallback = fallback, controlled_fallback

    def close(self) -> None:
        """End the polls, and release the log. Polls that run now still keep it mapped."""
        self.is_closed = 1
        self.arrays, self.whole, self.spare = (), None, None
        self.fallback = self.controlled_fallback = None


class SubscriptionState:
    """What the native polls of a subscription need."""

    __slots__ = _SUBSCRIPTION_SLOTS

    def __init__(
        self, fallback: Callable[..., int], controlled_fallback: Callable[..., int]
    ) -> None:
        self.fallback, self.controlled_fallback = fallback, controlled_fallback
        self.reader: ReaderState | None = None
        """The state of the only image, or None if it has no native polls, or is not the only
        one.
        """


@kernel
def describe(header, log, at, position, term_offset):
    """Fill a header for the data frame at the offset `at` of the log. `position` is its end."""
    fields = bytes_at(header, _HEADER_END)
    put_i64(fields, HEADER_POSITION, position)
    put_i64(fields, HEADER_FLAGS, frame.flags(log, at))
    put_i64(fields, HEADER_FRAME_TYPE, frame.frame_type(log, at))
    put_i64(fields, HEADER_SESSION_ID, data.session_id(log, at))
    put_i64(fields, HEADER_STREAM_ID, data.stream_id(log, at))
    put_i64(fields, HEADER_TERM_ID, data.term_id(log, at))
    put_i64(fields, HEADER_TERM_OFFSET, term_offset)
    put_i64(fields, HEADER_RESERVED_VALUE, data.reserved_value(log, at))


@kernel
def advance(fields, position):
    """Move the image's position, and publish it to the driver, unless the image is closed."""
    if position > get_i64(fields, POSITION) and get_i64(fields, IS_CLOSED) == 0:
        put_i64(fields, POSITION, position)
        put_i64_release(bytes_at(get_i64(fields, COUNTER_ADDRESS), 8), 0, position)


@kernel
def matches(answer, action):
    """Return 1 if an object equals an action, 0 if not, or -1 after an exception was set."""
    return 1 if answer == action else api.compare(answer, action, api.EQUAL)


@kernel
def obey(fields, answer, position):
    """Do what the answer of a controlled handler says. `position` is the end of its fragment.

    Returns: DELIVERED, STOPPED or ABORTED, or FAILED after an exception was set
    """
    if answer == api.none():
        return DELIVERED
    found = matches(answer, get_i64(fields, ABORT))
    if found != 0:
        return ABORTED if found > 0 else FAILED
    found = matches(answer, get_i64(fields, BREAK))
    if found != 0:
        return STOPPED if found > 0 else FAILED
    found = matches(answer, get_i64(fields, COMMIT))
    if found > 0:
        advance(fields, position)
    return DELIVERED if found >= 0 else FAILED


@kernel
def deliver(fields, handler, fragment_limit, space, is_controlled):
    """Call the handler for up to `fragment_limit` fragments of the current term.

    Returns: the number of consumed fragments, or FAILED after an exception was set
    """
    log_address, term_length = get_i64(fields, LOG_ADDRESS), get_i64(fields, TERM_LENGTH)
    log = bytes_at(log_address, get_i64(fields, LOG_LENGTH))
    begin = get_i64(fields, POSITION)
    offset = begin & (term_length - 1)
    base_position = begin - offset
    base = positions.index(begin, get_i64(fields, BITS)) * term_length
    header, flags = get_i64(fields, HEADER_ADDRESS), get_i64(fields, MOVABLE_FLAGS)
    arguments = bytes_at(space + api.FIRST_ARGUMENT, 16)
    # The view of the log keeps the log mapped, even if the handler closes the image.
    whole, view = get_i64(fields, WHOLE), get_i64(fields, SPARE)
    api.retain(whole)
    put_i64(fields, SPARE, 0)
    count, outcome = 0, DELIVERED
    while count < fragment_limit and offset < term_length:
        frame_length = frame.frame_length_acquire(log, base + offset)
        if frame_length <= 0:
            break
        end = offset + frame.aligned(frame_length)
        if end > term_length:
            break
        at, start, offset = base + offset, offset, end
        if frame.frame_type(log, at) == types.PAD:
            continue
        count += 1
        length = max(frame_length - data.HEADER_LENGTH, 0)
        view = payload_view.view_of(whole, view, flags, log_address, at + data.PAYLOAD, length)
        if view == 0:
            outcome = FAILED
            break
        describe(header, log, at, base_position + end, start)
        put_i64(arguments, 0, view)
        put_i64(arguments, 8, header)
        answer = api.call(handler, space, 2)
        if answer == 0:
            outcome = FAILED
            break
        if is_controlled:
            outcome = obey(fields, answer, base_position + end)
        api.release(answer)
        if outcome == ABORTED:
            count, offset = count - 1, start
        if outcome != DELIVERED or get_i64(fields, IS_CLOSED) != 0:
            break
    advance(fields, base_position + offset)
    if get_i64(fields, IS_CLOSED) == 0 and get_i64(fields, SPARE) == 0:
        put_i64(fields, SPARE, view)
    elif view != 0:
        api.release(view)
    api.release(whole)
    return FAILED if outcome == FAILED else count


@kernel
def limit_of(number, space):
    """Return an exact int as int64, limited to the values of an int64."""
    value = api.value_of(number, space)
    overflow = get_i32(bytes_at(space, 8), 0)
    if overflow != 0:
        return NO_LIMIT if overflow > 0 else -NO_LIMIT
    return value


@kernel
def run(state, arguments, count, names, space, is_controlled):
    """Run a poll with the arguments of its Python method. Returns its result."""
    fields, given = bytes_at(state, _LENGTH), bytes_at(arguments, 16)
    is_plain = names == 0 and (
        count == 1 or (count == 2 and api.type_of(get_i64(given, 8)) == api.int_type())
    )
    if not is_plain or get_i64(fields, IS_CLOSED) != 0:
        fallback = get_i64(fields, CONTROLLED_FALLBACK if is_controlled else FALLBACK)
        if fallback == api.none():
            return api.int_of(0)
        return api.pass_on(fallback, arguments, count, names)
    limit = limit_of(get_i64(given, 8), space) if count == 2 else DEFAULT_LIMIT
    delivered = deliver(fields, get_i64(given, 0), limit, space, is_controlled)
    if delivered == 0:
        api.let_others_run()
    return 0 if delivered == FAILED else api.int_of(delivered)


@python_method
def poll(state, arguments, count, names):
    return run(state, arguments, count, names, api.argument_space(), False)


@python_method
def controlled_poll(state, arguments, count, names):
    return run(state, arguments, count, names, api.argument_space(), True)


@kernel
def run_only(state, arguments, count, names, space, is_controlled):
    """Run a poll of a subscription's only image. Returns its result."""
    fields = bytes_at(state, READER + 8)
    reader = get_i64(fields, READER)
    if reader == api.none():
        at = ONLY_CONTROLLED_FALLBACK if is_controlled else ONLY_FALLBACK
        return api.pass_on(get_i64(fields, at), arguments, count, names)
    # The subscription may lose the image while its handler runs.
    api.retain(reader)
    found = run(reader, arguments, count, names, space, is_controlled)
    api.release(reader)
    return found


@python_method
def poll_only(state, arguments, count, names):
    return run_only(state, arguments, count, names, api.argument_space(), False)


@python_method
def controlled_poll_only(state, arguments, count, names):
    return run_only(state, arguments, count, names, api.argument_space(), True)
