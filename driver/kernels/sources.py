"""Digests of source code. Two modules with equal digests compile to the same machine code.

numba compiles a kernel together with the kernels that it calls, which may be defined in other
modules. The digest of a module therefore covers the module and everything that it imports from
these packages, directly or indirectly. Comments, docstrings, line numbers and the path of the
checkout are not part of it.

    file --sha256--> summary (digest of its syntax tree, imported names) --closure--> digest

Parsing several hundred modules takes seconds, so summaries are stored by the sha256 of the file's
bytes in `summaries-<Python version>.json` in the cache directory.
"""

import ast
import contextlib
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

PACKAGE = "windtunnel"
PACKAGES = ("driver", "harness", "reports")
"""The subpackages of `windtunnel` whose modules may define kernels."""
CACHE_VARIABLE = "WINDTUNNEL_KERNEL_CACHE"
"""Environment variable for the cache directory, defined here because importing `cache` is slow."""
SOURCE_ROOT = Path(__file__).resolve().parents[2]
"""The directory that contains `driver/` and `harness/`: a checkout or the installed package."""

FILE_NAME = f"summaries-{sys.version_info[0]}.{sys.version_info[1]}.json"


def cache_root() -> Path:
    """Return the directory below which all compiled kernels are stored."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home, "windtunnel", "kernels")


class Summary(NamedTuple):
    """The digest and the imports of one Python source file."""

    digest: str
    """The sha256 of the syntax tree without docstrings, in hex."""
    imports: tuple[str, ...]
    """The full names of the modules of this package that it imports, and of the names that it
    imports from them.
    """


def summarize(source: bytes) -> Summary:
    """Parse a source file and return its digest and imports. Raises SyntaxError if the file is not
    valid Python.
    """
    tree = ast.parse(source)
    imports: set[str] = set()
    # Statements only: expressions, which are most nodes, have neither docstrings nor imports.
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        imports.update(filter(_is_ours, _imported_names(node)))
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements:
                kept = [each for each in statements if not _is_string(each)]
                setattr(node, name, kept or [ast.Pass()])
                pending += kept
    return Summary(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(sorted(imports)))


def _is_string(statement: ast.AST) -> bool:
    """Return whether a statement is a docstring of a module, function, class or attribute."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _imported_names(statement: ast.AST) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        yield statement.module
        yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


@dataclass
class Sources:
    """Digests of the modules below one source directory."""

    root: Path = SOURCE_ROOT
    store: Path | None = None
    "The file in which summaries are stored, or None if they are not stored."
    _summaries: dict[str, Summary] = field(default_factory=dict)
    # Keys of this and the next two: file names relative to the root, with "/". Path objects would
    # take a fifth of a driver's startup time.
    _imported: dict[str, list[str]] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _files: dict[str, str | None] = field(default_factory=dict)
    "The source file of each module, or None if the module is not below the root."
    _stored: dict[str, Summary] | None = None
    _is_changed: bool = False

    def digest(self, file: Path) -> str:
        """Return the digest of a source file and all files that it imports, as 64 hex digits."""
        name = self._name_of(file)
        if name not in self._digests:
            self._digests[name] = self._combined(self._closure(name))
        return self._digests[name]

    def digest_of_all(self) -> str:
        """Return a single digest of all source files, as 64 hex digits."""
        return self._combined(self._names())

    def _combined(self, names: Iterable[str]) -> str:
        combined = hashlib.sha256()
        for name in names:
            combined.update(f"{name} {self._summary(name).digest}\n".encode())
        return combined.hexdigest()

    def closure(self, file: Path) -> list[Path]:
        """Return a sorted list of a file and all source files that it imports, directly or
        indirectly.
        """
        return [self.root / name for name in self._closure(self._name_of(file))]

    def _closure(self, name: str) -> list[str]:
        seen = {name}
        pending = [name]
        while pending:
            for found in self._imported_files(pending.pop()):
                if found not in seen:
                    seen.add(found)
                    pending.append(found)
        return sorted(seen)

    def _imported_files(self, name: str) -> list[str]:
        if name not in self._imported:
            found = {self._file_of(module) for module in self._summary(name).imports}
            self._imported[name] = [each for each in found if each is not None and each != name]
        return self._imported[name]

    def _file_of(self, module: str) -> str | None:
        """Return the source file of a module, or None if the module is not below the root."""
        if module not in self._files:
            package, _, rest = module.partition(".")
            found: str | None = None
            if package == PACKAGE and rest.partition(".")[0] in PACKAGES:
                stem = rest.replace(".", "/")
                for name in (f"{stem}.py", f"{stem}/__init__.py"):
                    if os.path.isfile(f"{self.root}/{name}"):
                        found = name
            self._files[module] = found
        return self._files[module]

    def files(self) -> list[Path]:
        """All source files of the packages below the source root, sorted by name."""
        return [self.root / name for name in self._names()]

    def _names(self) -> list[str]:
        start = len(str(self.root)) + 1
        return sorted(
            f"{folder[start:]}/{name}"
            for package in PACKAGES
            for folder, _, names in os.walk(f"{self.root}/{package}")
            for name in names
            if name.endswith(".py")
        )

    def module_of(self, file: Path) -> str:
        """Return the full name of the module in a source file below the source root."""
        relative = str(file)[len(str(self.root)) + 1 :].removesuffix(".py").replace(os.sep, ".")
        return f"{PACKAGE}.{relative}".removesuffix(".__init__")

    def _summary(self, name: str) -> Summary:
        if name not in self._summaries:
            with open(f"{self.root}/{name}", "rb") as opened:
                source = opened.read()
            key = hashlib.sha256(source).hexdigest()
            found = self._load().get(key)
            if found is None:
                found = self._load()[key] = summarize(source)
                self._is_changed = True
            self._summaries[name] = found
        return self._summaries[name]

    def _name_of(self, file: Path) -> str:
        """Return the name of a file relative to the root. Raises ValueError for another file."""
        return file.relative_to(self.root).as_posix()

    def _load(self) -> dict[str, Summary]:
        if self._stored is None:
            self._stored = {}
            with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
                if self.store is not None:
                    for key, (digest, imports) in json.loads(self.store.read_bytes()).items():
                        self._stored[key] = Summary(digest, tuple(imports))
        return self._stored

    def save(self) -> None:
        """Save the summaries of newly parsed source files. If two processes save at the same time,
        one set may be lost.
        """
        if not self._is_changed or self.store is None:
            return
        self._is_changed = False
        document = {key: (each.digest, each.imports) for key, each in self._load().items()}
        fresh = self.store.with_name(f"{self.store.name}.{secrets.token_hex(8)}")
        # The next process computes summaries that cannot be stored.
        with contextlib.suppress(OSError):
            self.store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.write_text(json.dumps(document), encoding="utf-8")
            os.replace(fresh, self.store)
