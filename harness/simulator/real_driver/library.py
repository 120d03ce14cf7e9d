"""Loads the real C driver's shared library and replaces its calls through the global offset table.

    file --check--> ELF of x86-64, lazily bound, with the required symbols
         --load---> address of each slot --replace--> our function

A library calls each function of libc, and each exported function of its own, through a slot in its
writable global offset table. A replaced slot affects the whole process, so a library may only be
loaded by a process that simulates. Everything is checked before the first slot is written.
Source: System V ABI, AMD64 supplement, 4.4 and 5.2.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from windtunnel.harness.simulator.support import Unsupported

PACKAGE = "pyaeron"
_PATTERN = "_pyaeron*.so"
_IDENTITY = b"\x7fELF\x02\x01\x01"
"""Magic number, 64 bits, little-endian, version 1."""
_MACHINE_X86_64 = 62
_LOAD, _DYNAMIC = 1, 2
_STRTAB, _SYMTAB, _RELA, _RELASZ, _PLTRELSZ, _JMPREL, _FLAGS, _FLAGS_1 = (
    *(5, 6, 7, 8, 2, 23, 30),
    0x6FFFFFFB,
)
_BIND_NOW, _NOW_1 = 8, 1
_GLOB_DAT, _JUMP_SLOT = 6, 7
_RELOCATION_BYTES, _SYMBOL_BYTES = 24, 24


def find_library() -> Path:
    """Return the path of the C driver's library in the package pyaeron.

    Raises Unsupported if the package is not installed or has no library.
    """
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise Unsupported(f"the Python package {PACKAGE} is not installed")
    files = sorted(Path(found.origin).parent.glob(_PATTERN))
    if len(files) != 1:
        raise Unsupported(
            f"{PACKAGE}: expected one file that matches {_PATTERN}, found {len(files)}"
        )
    return files[0]


def read_slots(data: bytes, name: str) -> dict[str, list[int]]:
    """Return the offsets of the global offset table entries through which a library calls each
    function.

    `name` names the library in messages. Raises Unsupported unless the library is an ELF file of
    x86-64 that is bound lazily.
    """
    try:
        return _read_slots(data, name)
    except (struct.error, IndexError, ValueError) as error:
        raise Unsupported(f"{name}: the ELF file is damaged: {error}") from error


def _read_slots(data: bytes, name: str) -> dict[str, list[int]]:
    if data[:7] != _IDENTITY:
        raise Unsupported(f"{name}: expected a 64-bit little-endian ELF file")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine != _MACHINE_X86_64:
        raise Unsupported(f"{name}: expected a library for x86-64, found ELF machine {machine}")
    (headers_at,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, headers_at + size * i) for i in range(count)]
    loads = [(at, address, length) for kind, _, at, address, _, length in headers if kind == _LOAD]
    dynamic = next((each for each in headers if each[0] == _DYNAMIC), None)
    if dynamic is None:
        raise Unsupported(f"{name}: expected a shared library, found no dynamic section")
    words = struct.iter_unpack("<qQ", data[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16])
    tags = dict(words)
    if tags.get(_FLAGS, 0) & _BIND_NOW or tags.get(_FLAGS_1, 0) & _NOW_1:
        raise Unsupported(f"{name}: expected lazy binding, but the slots are read-only (BIND_NOW)")

    def offset(tag: int) -> int:
        address = tags.get(tag, -1)
        for at, start, length in loads:
            if start <= address < start + length:
                return int(address - start + at)
        raise ValueError(f"its dynamic section has no valid {tag} entry")

    symbols, strings = offset(_SYMTAB), offset(_STRTAB)
    found: dict[str, list[int]] = {}
    for table, length in ((_JMPREL, _PLTRELSZ), (_RELA, _RELASZ)):
        start = offset(table)
        for at in range(start, start + tags[length], _RELOCATION_BYTES):
            slot, info = struct.unpack_from("<QQ", data, at)
            if info & 0xFFFFFFFF in (_JUMP_SLOT, _GLOB_DAT):
                (name_at,) = struct.unpack_from("<I", data, symbols + (info >> 32) * _SYMBOL_BYTES)
                begin = strings + name_at
                symbol = data[begin : data.index(0, begin)].decode("ascii", "replace")
                found.setdefault(symbol, []).append(slot)
    return found


class Library:
    """A loaded library whose calls can be replaced."""

    def __init__(self, path: Path, called: frozenset[str], exported: frozenset[str]) -> None:
        """Check and load a library without changing it.

        `called` are the functions whose slots will be replaced, and `exported` those that will be
        called. Raises Unsupported if one is missing.
        """
        self._slots = read_slots(path.read_bytes(), path.name)
        missing = sorted(called - self._slots.keys())
        if missing:
            raise Unsupported(f"{path.name}: expected calls to {', '.join(missing)}, found none")
        self.functions = ctypes.CDLL(str(path))
        missing = sorted(each for each in exported if not hasattr(self.functions, each))
        if missing:
            raise Unsupported(f"{path.name}: does not export {', '.join(missing)}")
        self._base = _base_address(path)
        self._kept: list[object] = []

    def keep(self, *functions: object) -> None:
        """Keep references to ctypes functions that the library can call."""
        self._kept.extend(functions)

    def replace(self, functions: Mapping[str, object]) -> None:
        """Make the library call these ctypes functions instead of the original functions."""
        for name, function in functions.items():
            self._kept.append(function)
            address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
            for slot in self._slots[name]:
                ctypes.c_uint64.from_address(self._base + slot).value = address or 0


def _base_address(path: Path) -> int:
    """Return the lowest address at which a library is mapped."""
    with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
        found = [line.split("-")[0] for line in maps if line.rstrip("\n").endswith(str(path))]
    if not found:
        raise Unsupported(f"{path.name}: the loaded library is missing from /proc/self/maps")
    return min(int(each, 16) for each in found)
