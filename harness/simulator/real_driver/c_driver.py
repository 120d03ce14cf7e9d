"""A real C driver whose duty cycles the simulator runs.

    CDriver(library, directory, settings) --do_work(address)--> turns by the simulator's kernel
                                          --close()

The driver is unmodified. It runs as an INVOKER, so it has no threads, and reads its settings from
environment variables like any driver.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import byref, c_bool, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path

from windtunnel.driver.base.errors import DriverError
from windtunnel.harness.simulator.real_driver import system_calls
from windtunnel.harness.simulator.real_driver.library import Library, find_library

_INVOKER = 3
_KIB, _MIB = 1 << 10, 1 << 20
_PREFIX = "AERON_"
TURN = "aeron_driver_main_do_work"
_SET = "aeron_driver_context_set_"
_VARIABLES = {"AERON_TERM_BUFFER_SPARSE_FILE": "true", "AERON_PERFORM_STORAGE_CHECKS": "false"}
_EXPORTED = frozenset(
    {
        *("aeron_driver_context_init", "aeron_driver_context_close", "aeron_driver_init"),
        *("aeron_driver_start", "aeron_driver_close", TURN, "aeron_errmsg", "aeron_set_getifaddrs"),
        *(
            _SET + each
            for each in (
                *("dir", "dir_delete_on_start", "threading_mode", "counters_buffer_length"),
                *("loss_report_buffer_length", "file_page_size", "print_configuration"),
            )
        ),
    }
)
_loaded: list[Library] = []


def load(path: Path | None = None) -> Library:
    """Load the C driver's library into this process, and replace its system calls.

    `path` is the library of a user's own build, instead of pyaeron's. It counts at the first call.
    Raises Unsupported, and changes nothing, if the library is not as expected.
    """
    if not _loaded:
        called = frozenset(system_calls.FUNCTIONS)
        library = Library(path or find_library(), called, _EXPORTED)
        library.replace(system_calls.make_functions())
        get, free = system_calls.make_interface_functions()
        library.keep(get, free)
        _call(library, "aeron_set_getifaddrs", (c_void_p, get), (c_void_p, free), result=None)
        _loaded.append(library)
    return _loaded[0]


def turn_address() -> int:
    """Return the address of the C function that runs one duty cycle of a driver."""
    return ctypes.cast(getattr(load().functions, TURN), c_void_p).value or 0


class CDriver:
    """A real C driver in the simulator's process."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        """Start the driver. `variables` are Aeron's environment variables.

        Raises DriverError if the driver does not start.
        """
        self._library = load()
        self._context, self._driver = c_void_p(), c_void_p()
        with _environment({**_VARIABLES, **variables}):
            self._require("aeron_driver_context_init", (c_void_p, byref(self._context)))
        settings = {
            "dir": (c_char_p, str(directory).encode()),
            # A killed driver looks alive until its heartbeat times out.
            "dir_delete_on_start": (c_bool, True),
            "threading_mode": (c_int, _INVOKER),
            "counters_buffer_length": (c_size_t, _MIB),
            "loss_report_buffer_length": (c_size_t, 64 * _KIB),
            "file_page_size": (c_size_t, 4 * _KIB),
            "print_configuration": (c_bool, False),
        }
        for name, value in settings.items():
            self._require(_SET + name, (c_void_p, self._context), value)
        self._require(
            "aeron_driver_init", (c_void_p, byref(self._driver)), (c_void_p, self._context)
        )
        # The second argument leaves the duty cycles to the caller.
        self._require("aeron_driver_start", (c_void_p, self._driver), (c_bool, True))

    @property
    def address(self) -> int:
        """Return the driver's address, which is the argument of the C function that runs a duty
        cycle.
        """
        return self._driver.value or 0

    def do_work(self) -> int:
        """Run one duty cycle of conductor, sender and receiver. Returns the work count."""
        return int(_call(self._library, TURN, (c_void_p, self._driver)) or 0)

    def close(self) -> None:
        """Close the driver and free its memory."""
        self._require("aeron_driver_close", (c_void_p, self._driver))
        self._require("aeron_driver_context_close", (c_void_p, self._context))

    def _require(self, name: str, *arguments: tuple[object, object]) -> None:
        if _call(self._library, name, *arguments) != 0:
            found = _call(self._library, "aeron_errmsg", result=c_char_p)
            text = found.decode("utf-8", "replace") if isinstance(found, bytes) else "no reason"
            raise DriverError(f"{name} failed: {text}")


def _call(
    library: Library, name: str, *arguments: tuple[object, object], result: object = c_int
) -> int | bytes | None:
    function = getattr(library.functions, name)
    function.restype, function.argtypes = result, [kind for kind, _ in arguments]
    found: int | bytes | None = function(*(value for _, value in arguments))
    return found


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set the given Aeron environment variables, and no others, for the duration of the context."""
    before = {name: value for name, value in os.environ.items() if name.startswith(_PREFIX)}
    for name in before:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
