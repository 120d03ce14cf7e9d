"""Loads kernel images and calls them, without importing numba.

Importing numba costs more time and memory than a media driver itself. A kernel that is in the cache
needs only numba's C extension modules: the dispatcher, which selects a specialization by the types
of the arguments, and the helpers that convert arguments. This module loads them directly from their
files. numba itself is imported only when a kernel must be compiled.

    argument -> key, such as "int64" or "array(|u1,1,C)" -> type code -> dispatcher -> machine code

The C dispatcher keeps its type codes in static variables. numba numbers its types differently, so
this module loads a private copy. numba can then be imported later in the same process.

Source: numba 0.68, `_dispatcher.cpp`, `_typeof.cpp`, `core/dispatcher.py`, `core/base.py`.
"""

import builtins
import ctypes
import enum
import importlib.machinery
import importlib.util
import itertools
import mmap
import os
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.driver.kernels.kernel_image import ImageError, KernelImage

_SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
_NUMBERS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
"""The number types whose codes must be registered with the C dispatcher by name."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_CODE = mmap.PROT_READ | mmap.PROT_EXEC


@cache
def numba_directory() -> Path:
    """Return the directory of the installed numba package. Does not import it."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise ImportError("the package numba is not installed")
    return Path(found.origin).parent


def _load(name: str, path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    # A later import of numba must import its extension modules again to set them as attributes.
    if sys.modules.get(name) is module:
        del sys.modules[name]
    return module


def _extension(name: str) -> Any:
    return _load(f"numba.{name}", f"{numba_directory() / name.replace('.', os.sep)}{_SUFFIX}")


def _private_dispatcher() -> Any:
    """Load a private copy of numba's C dispatcher without importing the numba package."""
    stub: Any = types.ModuleType("numba")
    stub._devicearray = _extension("_devicearray")
    imported = {"numba": stub, "numba._devicearray": stub._devicearray}
    before = {name: sys.modules.get(name) for name in imported}
    descriptor = os.memfd_create("numba-dispatcher", os.MFD_CLOEXEC)
    sys.modules.update(imported)
    try:
        path = f"{numba_directory() / '_dispatcher'}{_SUFFIX}"
        content = Path(path).read_bytes()
        try:
            with open(descriptor, "wb", closefd=False) as copy:
                copy.write(content)
        except OSError as error:
            # The limit for the size of files holds for files in memory, too.
            raise OSError(error.errno, error.strerror, f"copy of {path} in memory") from error
        return _load("numba._dispatcher", f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


class _Omitted:
    """Stand-in for numba's type of omitted arguments, which the C dispatcher requires but never
    uses.
    """


_helpers = _extension("_helperlib")
_reference_counts = _extension("core.runtime._nrt_python")
_functions = _extension("_dynfunc")
_conversions = _extension("core.typeconv._typeconv")
_dispatcher = _private_dispatcher()
Dispatcher: Any = _dispatcher.Dispatcher
"""The base class of kernels: numba's C dispatcher, which calls the entry point inserted by
`_insert` for the type codes of the arguments.
"""

_codes = {name: types.SimpleNamespace(_code=code) for code, name in enumerate(_NUMBERS)}
_next_code = itertools.count(len(_NUMBERS))
_dispatcher.typeof_init(_Omitted, {name: each._code for name, each in _codes.items()})
_manager = _conversions.new_type_manager()
MANAGER_ADDRESS = _conversions.get_pointer(_manager)

_symbols = {
    "_Py_NoneStruct": id(None),
    **{f"numba_{name}": address for name, address in _helpers.c_helpers.items()},
    **{
        name if name.startswith("_") else f"NRT_{name}": address
        for name, address in _reference_counts.c_helpers.items()
    },
    **{
        f"PyExc_{each.__name__}": id(each)
        for each in vars(builtins).values()
        if isinstance(each, type) and issubclass(each, BaseException)
    },
}
"""Symbol -> address, for symbols that no shared library exports with this meaning."""


def add_symbol(name: str, address: int) -> None:
    """Define a symbol to which kernel images can refer."""
    _symbols[name] = address


def _address_of_symbol(name: str) -> int:
    found = _symbols.get(name)
    if found is None:
        try:
            # Search all libraries that the process has loaded: Python, libc and libm.
            found = ctypes.cast(getattr(_LIBC, name), ctypes.c_void_p).value
        except AttributeError:
            found = None
    if found is None:
        raise ImageError(f"no library defines the symbol {name}")
    _symbols[name] = found
    return found


def entry_point(image: KernelImage, name: str, module: Any) -> Any:
    """Return the Python function that calls a kernel image. Raises ImageError for an undefined
    symbol.
    """
    memory, environment = place(image)
    address = memory.ctypes.data + image.entry
    return _functions.make_function(module, name, "", address, environment, (memory, environment))


def place(image: KernelImage) -> tuple[np.ndarray, Any]:
    """Copy a kernel image to executable memory. Returns the memory and the numba environment.

    Both must stay alive as long as the code is used. The memory is never both writable and
    executable. Raises ImageError for an undefined symbol.
    """
    length = len(image.code)
    memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    array = np.frombuffer(memory, np.uint8)
    base = array.ctypes.data
    memory[:length] = image.code
    environment = _functions.Environment({})
    _add(memory, image.fixups, base)
    offsets = list(image.environments)
    addresses = [id(environment)] * len(offsets)
    for symbol, uses in image.imports.items():
        offsets += uses
        addresses += [_address_of_symbol(symbol)] * len(uses)
    _add(memory, np.array(offsets, np.int64), np.array(addresses, np.int64))
    if _LIBC.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(length), _CODE) != 0:
        raise ImageError(f"mprotect failed: {os.strerror(ctypes.get_errno())}")
    return array, environment


def _add(memory: mmap.mmap, offsets: np.ndarray, values: int | np.ndarray) -> None:
    """Add a value, or one value each, to the 64-bit words at these byte offsets, which need not be
    aligned. No two words overlap.
    """
    words = np.ndarray(max(len(memory) - 7, 0), np.int64, memory, strides=(1,))
    words[offsets] += values


def type_of(key: str) -> Any:
    """Return the type object that the C dispatcher expects for the key of an argument's type."""
    found = _codes.get(key)
    if found is None:
        found = _codes.setdefault(key, types.SimpleNamespace(_code=next(_next_code)))
    return found


def key_of(value: object) -> str | None:
    """Return the key of an argument's type, or None if kernels with this argument cannot be cached.

    Two arguments with the same key have the same numba type.
    """
    kind = type(value)
    if kind is int:
        return "int64"
    if kind is np.ndarray or kind is np.recarray:
        return _key_of_array(value)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return _key_of_tuple(value)
    if value is None:
        return "none"
    if kind is bool or kind is np.bool_:
        return "bool"
    if kind is float:
        return "float64"
    if isinstance(value, np.void):
        return f"record({_key_of_dtype(value.dtype)})"
    if isinstance(value, np.generic):
        return value.dtype.name
    if isinstance(value, enum.IntEnum):
        return f"enum({kind.__module__}.{kind.__qualname__})"
    return None


_C_CONTIGUOUS, _F_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400
_LAYOUT = _C_CONTIGUOUS | _F_CONTIGUOUS | _ALIGNED | _WRITEABLE
"""The flags of an array on which the compiled code depends. Source: numpy, NPY_ARRAY_*."""


def _key_of_dtype(dtype: np.dtype) -> str:
    return dtype.str if dtype.names is None else _key_of_fields(dtype, dtype.isalignedstruct)


@cache
def _key_of_fields(dtype: np.dtype, is_aligned: bool) -> str:
    """Return the key of a structured type. Two types that differ in their alignment are equal."""
    del is_aligned
    return repr(dtype)


def _key_of_array(array: np.ndarray) -> str:
    dtype = array.dtype
    return _key_of_layout(dtype, dtype.isalignedstruct, array.ndim, array.flags.num & _LAYOUT)


@cache
def _key_of_layout(dtype: np.dtype, is_aligned: bool, dimensions: int, flags: int) -> str:
    """Return the key of an array with some of the flags of numpy's C API."""
    del is_aligned
    layout = "C" if flags & _C_CONTIGUOUS else "F" if flags & _F_CONTIGUOUS else "A"
    options = ("" if flags & _WRITEABLE else ",readonly") + (
        "" if flags & _ALIGNED else ",unaligned"
    )
    return f"array({_key_of_dtype(dtype)},{dimensions},{layout}{options})"


def _key_of_tuple(values: tuple[object, ...]) -> str | None:
    keys = [key_of(each) for each in values]
    if None in keys:
        return None
    kind = type(values)
    name = "" if kind is tuple else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}({','.join(str(each) for each in keys)})"
