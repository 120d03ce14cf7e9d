"""A kernel that is loaded from the cache, or compiled by numba if it is not cached.

    first call with new types: cache -> machine code
                               no match: numba -> object file -> cache -> machine code
    later calls:               C dispatcher -> machine code

Arguments that are not numbers, arrays, records or tuples of these, such as functions, have no key.
Calls with these arguments are passed on to numba.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from windtunnel.driver.kernels import native_runtime
from windtunnel.driver.kernels.kernel_store import KernelStore, store_of

_SEPARATOR = "\n"
_lock = threading.RLock()


class NativeKernel(native_runtime.Dispatcher):  # type: ignore[misc]  # a C type
    """A compiled kernel that Python can call."""

    def __init__(
        self,
        function: Callable[..., object],
        options: dict[str, bool],
        *,
        is_outlined: bool = False,
    ) -> None:
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.__wrapped__ = self.py_func = function
        self._options, self._is_outlined = options, is_outlined
        self._entries: dict[str, Any] = {}
        self._numba_dispatcher: Any = None
        code = function.__code__
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
            raise TypeError(f"{function.__qualname__}: expected positional parameters only")
        names = code.co_varnames[: code.co_argcount]
        defaults = function.__defaults__ or ()
        super().__init__(
            native_runtime.MANAGER_ADDRESS, len(names), True, names, defaults, False, False, True
        )

    @property
    def signatures(self) -> list[str]:
        """The keys of the argument types for which machine code is already loaded."""
        return list(self._entries)

    @property
    def numba_dispatcher(self) -> Any:
        """The numba dispatcher of this kernel. Imports numba."""
        with _lock:
            if self._numba_dispatcher is None:
                from windtunnel.driver.kernels.dispatcher import KernelDispatcher

                self._numba_dispatcher = KernelDispatcher(
                    self.py_func,
                    is_outlined=self._is_outlined,
                    targetoptions={"nopython": True, **self._options},
                )
            return self._numba_dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The numba type of this kernel, for calls from other kernels. Source: numba,
        `typeof_impl`.
        """
        return self.numba_dispatcher._numba_type_

    def typeof_pyval(self, value: object) -> Any:
        """Return the type object by which numba's C dispatcher identifies an argument's type."""
        key = native_runtime.key_of(value)
        return native_runtime.type_of(f"other({type(value)})" if key is None else key)

    @cached_property
    def _store(self) -> KernelStore | None:
        # Opened at the first call, because only other kernels call most kernels.
        return store_of(self.py_func)

    def prepare(self, arguments: Sequence[object]) -> Any:
        """Load or compile the kernel for arguments of these types, and return its entry point.

        Returns None if an argument's type has no key, in which case the caller must call numba.
        """
        keys = [native_runtime.key_of(each) for each in arguments]
        known = [each for each in keys if each is not None]
        if len(known) != len(keys):
            return None
        key = _SEPARATOR.join(known)
        with _lock:
            if key not in self._entries:
                image = self._store.load(key) if self._store is not None else None
                self._enter(key, self._compile(key, arguments) if image is None else image)
            return self._entries[key]

    def load_stored(self) -> int:
        """Load all of the kernel's cached specializations. Returns their number."""
        with _lock:
            stored = list(self._store.load_all()) if self._store is not None else []
            for key, image in stored:
                if key not in self._entries:
                    self._enter(key, image)
        return len(stored)

    def _compile(self, key: str, arguments: Sequence[object]) -> Any:
        image = self.numba_dispatcher.compile_image(arguments)
        if self._store is not None:
            self._store.save(key, image)
        return image

    def _enter(self, key: str, image: Any) -> None:
        module = sys.modules.get(self.py_func.__module__)
        entry = native_runtime.entry_point(image, self.py_func.__name__, module)
        keys = key.split(_SEPARATOR) if key else []
        self._entries[key] = entry
        self._insert([native_runtime.type_of(each)._code for each in keys], entry)

    def _compile_for_args(self, *arguments: object) -> Any:
        """Return the function to call with these arguments. numba's C dispatcher calls this method
        if no loaded specialization matches.
        """
        entry = self.prepare(arguments)
        return self.numba_dispatcher if entry is None else entry
