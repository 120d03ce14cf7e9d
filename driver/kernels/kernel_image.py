"""Converts a compiled kernel's object file to a kernel image, which can be loaded without a linker.

    ELF object (from LLVM) -> KernelImage -> file in the cache -> memory, relocated, executable

The code model of numba's JIT compiler makes every reference a 64-bit absolute address. An image
therefore needs two lists of 64-bit words: those to which its own address is added, and those that
receive the address of a symbol, such as a function of libc or of Python's C API.

Source: System V ABI, AMD64 supplement (ELF-64, R_X86_64_64).
"""

import hashlib
import json
import struct
from typing import Any, NamedTuple

import numpy as np

ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"
"""Prefix of numba's variables that hold a pointer to the environment of a compiled function."""

_HEADER = struct.Struct("<IBBHQQ")  # symbol: name, info, other, section, value, size
_SECTION = struct.Struct("<IIQQQQIIQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8
_ALLOCATED = 2
_UNDEFINED, _COMMON = 0, 0xFFF2
_ABSOLUTE_64 = 1
_WORD_BYTES = 8
_DIGEST_BYTES = 32


class ImageError(ValueError):
    """An object file or a stored kernel image cannot be loaded."""


class KernelImage(NamedTuple):
    """A kernel's code and constants, relocated to address 0."""

    code: bytes
    entry: int
    "Offset of the entry function, which Python calls."
    fixups: np.ndarray
    "Offsets of the words to which the image's load address is added, int64[:]."
    imports: dict[str, list[int]]
    "Symbol -> offsets of the words to which the symbol's address is added."
    environments: list[int]
    "Offsets of the words that receive a pointer to the kernel's numba environment."

    def pack(self, key: str) -> bytes:
        """Serialize the kernel image as a SHA-256 digest, a JSON header, the fixups and the
        code.
        """
        header = json.dumps(
            {
                "key": key,
                "entry": self.entry,
                "fixups": len(self.fixups),
                "imports": self.imports,
                "environments": self.environments,
            }
        ).encode()
        body = struct.pack("<I", len(header)) + header + self.fixups.tobytes() + self.code
        return hashlib.sha256(body).digest() + body


def unpack(stored: bytes) -> tuple[str, KernelImage]:
    """Decode a kernel image and its key from stored bytes. Raises ImageError if the bytes are
    damaged.
    """
    digest, body = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
    if len(body) < 4 or hashlib.sha256(body).digest() != digest:
        raise ImageError("expected a kernel image, found other or damaged bytes")
    at = 4 + struct.unpack_from("<I", body)[0]
    header: dict[str, Any] = json.loads(body[4:at])
    end = at + header["fixups"] * _WORD_BYTES
    image = KernelImage(
        code=body[end:],
        entry=header["entry"],
        fixups=np.frombuffer(body[at:end], np.int64),
        imports=header["imports"],
        environments=header["environments"],
    )
    return header["key"], image


def from_object(elf: bytes, entry: str) -> KernelImage:
    """Convert an ELF object file to a kernel image. `entry` names the function that Python calls.

    Raises ImageError for a relocation or a section that kernels do not have.
    """
    return _Converter(elf).image(entry)


class _Converter:
    def __init__(self, elf: bytes) -> None:
        self._elf = elf
        start = struct.unpack_from("<Q", elf, 40)[0]
        size, count, names = struct.unpack_from("<HHH", elf, 58)
        self._sections = [_SECTION.unpack_from(elf, start + each * size) for each in range(count)]
        self._names = names
        self._code = bytearray()
        self._at: dict[int, int] = {}
        """Section number -> offset in the image."""
        self._fixups: list[int] = []
        self._imports: dict[str, list[int]] = {}
        self._environments: list[int] = []

    def image(self, entry: str) -> KernelImage:
        for number, section in enumerate(self._sections):
            if section[2] & _ALLOCATED and not self._is_unwind_table(section):
                self._place(number, section)
        (table,) = (each for each in self._sections if each[1] == _SYMBOLS)
        symbols = self._resolved_symbols(table)
        for section in self._sections:
            if section[1] == _RELOCATIONS and section[7] in self._at:
                self._relocate(section, symbols)
        offsets = {name: value for name, value in symbols if value is not None}
        if entry not in offsets:
            raise ImageError(f"the object file does not define {entry}")
        return KernelImage(
            bytes(self._code), offsets[entry], np.array(self._fixups, np.int64), self._imports,
            self._environments,
        )  # fmt: skip

    def _is_unwind_table(self, section: tuple[int, ...]) -> bool:
        return self._string(self._names, section[0]) == ".eh_frame"

    def _string(self, table: int, offset: int) -> str:
        start = self._sections[table][4] + offset
        return self._elf[start : self._elf.index(b"\0", start)].decode()

    def _reserve(self, length: int, alignment: int) -> int:
        self._code.extend(bytes(-len(self._code) % max(alignment, 1)))
        at = len(self._code)
        self._code.extend(bytes(length))
        return at

    def _place(self, number: int, section: tuple[int, ...]) -> None:
        offset, length, alignment = section[4], section[5], section[8]
        at = self._reserve(length, alignment)
        if section[1] != _NO_BITS:
            self._code[at : at + length] = self._elf[offset : offset + length]
        self._at[number] = at

    def _resolved_symbols(self, table: tuple[int, ...]) -> list[tuple[str, int | None]]:
        """Return the name of each symbol and its offset in the kernel image. The offset of an
        undefined symbol is None.
        """
        symbols: list[tuple[str, int | None]] = []
        for at in range(table[4], table[4] + table[5], _HEADER.size):
            name_at, _, _, section, value, size = _HEADER.unpack_from(self._elf, at)
            name = self._string(table[6], name_at)
            if section == _COMMON:
                offset = self._reserve(size, value)
                if not name.startswith(ENVIRONMENT_PREFIX) or size != _WORD_BYTES:
                    raise ImageError(f"expected no variables in a kernel, found {name}")
                self._environments.append(offset)
                symbols.append((name, offset))
            elif section == _UNDEFINED or section not in self._at:
                symbols.append((name, None))
            else:
                symbols.append((name, self._at[section] + value))
        return symbols

    def _relocate(self, section: tuple[int, ...], symbols: list[tuple[str, int | None]]) -> None:
        base = self._at[section[7]]
        for at in range(section[4], section[4] + section[5], _RELOCATION.size):
            offset, info, addend = _RELOCATION.unpack_from(self._elf, at)
            if info & 0xFFFFFFFF != _ABSOLUTE_64:
                raise ImageError(f"expected R_X86_64_64, found relocation {info & 0xFFFFFFFF}")
            name, value = symbols[info >> 32]
            word = base + offset
            if value is None:
                if not name:
                    raise ImageError("expected the name of a symbol, found none")
                struct.pack_into("<q", self._code, word, addend)
                self._imports.setdefault(name, []).append(word)
            else:
                struct.pack_into("<q", self._code, word, value + addend)
                self._fixups.append(word)
