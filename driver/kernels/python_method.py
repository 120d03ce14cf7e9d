"""Python functions in machine code: kernels that Python calls directly, like functions of a C
extension.

    Python --METH_FASTCALL | METH_KEYWORDS--> machine code --C API--> Python objects

A call of any other kernel looks up the types of its arguments, converts them, and releases the GIL.
This takes a microsecond, several times as long as it takes to write a short message. The kernel of
a Python method gets the addresses of Python objects instead, and calls Python's C API itself (see
`windtunnel.driver.base.python_api`):

    @python_method
    def offer(owner, arguments, count, names):
        # owner: address of the object that the method is bound to
        # arguments: address of the addresses of `count` positional and then the keyword arguments
        # names: address of a tuple of the keyword arguments' names, or 0
        # returns: address of the result with a new reference, or 0 after an exception was set

The GIL stays held. The caller owns the arguments, and the method its owner, so all of them exist
until the call ends.
"""

import ctypes
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from windtunnel.driver.kernels import processor
from windtunnel.driver.kernels.jit import JIT_DISABLED

IS_AVAILABLE = (
    not JIT_DISABLED
    and processor.is_native()
    and sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
"""Whether Python methods in machine code can be used here. Without the GIL they would not be safe,
because they read objects that other threads could change.
"""

_KEY = "python method"
_CALL_FLAGS = 0x80 | 0x02
_lock = threading.RLock()


class _Definition(ctypes.Structure):
    """`PyMethodDef`: the description of a function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class PythonMethod:
    """A kernel that Python calls with objects instead of numbers and arrays."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.__wrapped__ = self.py_func = function
        self._definition: _Definition | None = None
        self._placed: Any = None
        """The machine code and its numba environment."""

    def bind(self, owner: object) -> Callable[..., Any]:
        """Return the method of an object. It holds a reference to the object.

        Loads the kernel from the cache, or compiles it.
        """
        return _new_function(self._loaded(is_compiled=True), owner)

    def bind_stored(self, owner: object) -> Callable[..., Any] | None:
        """Return the method of an object like `bind`, or None if the kernel must be compiled first,
        or if Python methods in machine code are not available.
        """
        return _new_function(self._definition, owner) if self.load_stored() else None

    def load_stored(self) -> bool:
        """Load the kernel if the cache contains it. Returns whether it is loaded."""
        return IS_AVAILABLE and self._loaded(is_compiled=False) is not None

    @cached_property
    def _store(self) -> Any:
        from windtunnel.driver.kernels.kernel_store import store_of

        return store_of(self.py_func)

    def _loaded(self, *, is_compiled: bool) -> _Definition | None:
        with _lock:
            if self._definition is None:
                image = self._store.load(_KEY) if self._store is not None else None
                if image is None and is_compiled:
                    image = self._compile()
                if image is not None:
                    self._enter(image)
            return self._definition

    def _compile(self) -> Any:
        from windtunnel.driver.kernels.method_compiler import compile_method

        image = compile_method(self.py_func)
        if self._store is not None:
            self._store.save(_KEY, image)
        return image

    def _enter(self, image: Any) -> None:
        from windtunnel.driver.kernels import native_runtime

        self._placed = memory, _ = native_runtime.place(image)
        address = memory.ctypes.data + image.entry
        self._definition = _Definition(self.__name__.encode(), address, _CALL_FLAGS, None)


def _new_function(definition: _Definition | None, owner: object) -> Callable[..., Any]:
    assert definition is not None
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = ctypes.POINTER(_Definition), ctypes.py_object, ctypes.c_void_p
    made: Callable[..., Any] = new(ctypes.byref(definition), owner, None)
    return made


def python_method(function: Callable[..., object]) -> PythonMethod:
    """Make a Python method of a kernel. It is compiled when it is first bound."""
    return PythonMethod(function)


def replace_methods(
    target: object,
    kind: type,
    methods: Mapping[str, PythonMethod],
    owner: object,
    *,
    is_compiled: bool,
) -> None:
    """Replace methods of one object by the same functions in machine code, bound to `owner`.

    Methods that a subclass of `kind` overrides are kept, and all are kept if Python methods in
    machine code are not available. With `is_compiled`, kernels that are not in the cache are
    compiled, otherwise their methods are kept.
    """
    for name, method in methods.items():
        if IS_AVAILABLE and getattr(type(target), name) is getattr(kind, name):
            bound = method.bind(owner) if is_compiled else method.bind_stored(owner)
            if bound is not None:
                setattr(target, name, bound)


def restore_methods(target: object, methods: Mapping[str, PythonMethod]) -> None:
    """Undo `replace_methods`."""
    for name in methods:
        vars(target).pop(name, None)
