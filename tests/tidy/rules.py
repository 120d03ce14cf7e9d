"""The rules of STYLE.md that no linter checks, each a pure function from a text to its faults.

A fault is one line of text. The rules never touch the file system; `test_repository` feeds them.
"""

import re
from collections.abc import Callable

from tests.tidy.syntax import outline

LINES_MAX = 390
TEST_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100

MODULE_HOMES = {
    "numba": (
        "driver/base/",
        "driver/kernels/",
        "harness/exam/mutation_switch.py",
        "harness/simulator/world/saved_states.py",
        "harness/simulator/world/native_call.py",
        "harness/inspect/compare_and_swap.py",
        "harness/middlebox/relay/libc.py",
        "tests/",
    ),
    "llvmlite": (
        "driver/base/",
        "driver/files/bus_error_handler.py",
        "driver/kernels/",
        "harness/exam/mutation_switch.py",
        "harness/orchestrate/precompile/precompile.py",
        "harness/simulator/real_driver/fast_calls_code.py",
        "harness/simulator/world/native_call.py",
        "tests/",
    ),
    "mmap": (
        "driver/archive/storage/huge_pages.py",
        "driver/files/bus_error_guard.py",
        "driver/files/bus_error_handler.py",
        "driver/files/mapping.py",
        "driver/kernels/native_runtime.py",
        "harness/exam/mutation_switch.py",
        "harness/simulator/world/host_memory.py",
        "tests/",
    ),
    "subprocess": (
        "driver/archive/server/driver_child.py",
        "harness/orchestrate/processes/process.py",
        "harness/uml/",
        "harness/lab/child_process.py",
        "examples/",
        "tests/",
    ),
    "docker": (
        "harness/orchestrate/labs/engine.py",
        "harness/orchestrate/labs/application_container.py",
        "harness/orchestrate/labs/image_build.py",
        "harness/cli/machine.py",
        "tests/docker/",
    ),
    "pyspark": ("reports/", "tests/"),
}
"""Files in which a module may be imported; all other modules may be imported everywhere."""

_MARKERS = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
_MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work/(?:main|shared)|root|home/\w+|tmp/golden)(?!\w)")
_REGISTRY_HOSTS = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[\w-]*[.]docker|ghcr[.]io|quay[.]io"
    r"|deb[.]debian[.]org|archive[.]ubuntu[.]com"
)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s#]+)(#[^)]*)?\)")
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.M)
_MAKE_CALL = re.compile(r"^\s*(?:@|\$ )?make +([a-z][a-z-]*)|`make ([a-z][a-z-]*)", re.M)


def too_many_lines(path: str, text: str) -> list[str]:
    count, most = text.count("\n"), TEST_LINES_MAX if path.startswith("tests/") else LINES_MAX
    return [f"{path}: {count} lines; at most {most}"] if count > most else []


def too_wide(path: str, text: str) -> list[str]:
    return [
        f"{path}:{number}: {len(line)} columns; at most {COLUMNS_MAX}"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS_MAX
    ]


def long_functions(path: str, text: str) -> list[str]:
    return [
        f"{path}:{line}: {name} has {count} lines; at most {FUNCTION_LINES_MAX}"
        for line, name, count in outline(text).functions
        if count > FUNCTION_LINES_MAX
    ]


def modules_away_from_home(path: str, text: str) -> list[str]:
    return [
        f"{path}:{line}: {module} may be imported only in {', '.join(MODULE_HOMES[module])}"
        for line, module in outline(text).imports
        if module in MODULE_HOMES and not path.startswith(MODULE_HOMES[module])
    ]


def no_module_docstring(path: str, text: str) -> list[str]:
    return [] if outline(text).has_docstring else [f"{path}: no docstring opens the module"]


def markers(path: str, text: str) -> list[str]:
    return _each_line(path, text, _MARKERS, "a leftover marker")


def machine_paths(path: str, text: str) -> list[str]:
    return _each_line(path, text, _MACHINE_PATHS, "a path of one machine")


def registry_hosts(path: str, text: str) -> list[str]:
    return _each_line(path, text, _REGISTRY_HOSTS, "the address of a registry")


def _each_line(path: str, text: str, pattern: re.Pattern[str], what: str) -> list[str]:
    return [
        f"{path}:{number}: {what}: {found[0]}"
        for number, line in enumerate(text.splitlines(), 1)
        if (found := pattern.search(line))
    ]


def broken_links(path: str, text: str, exists: Callable[[str], bool]) -> list[str]:
    """Return the broken relative links of a Markdown text; `exists` decides about one link."""
    targets = [found[1] for found in _LINK.finditer(text)]
    return [
        f"{path}: the link {target} leads nowhere"
        for target in targets
        if not re.match(r"[a-z]+:", target) and not exists(target)
    ]


def make_targets(makefile: str) -> set[str]:
    return set(_TARGET.findall(makefile))


def unknown_make_targets(path: str, text: str, makefile: str) -> list[str]:
    """Return the `make` calls of a script or a document whose targets do not exist."""
    called = {first or second for first, second in _MAKE_CALL.findall(text)}
    return [
        f"{path}: make {name} does not exist" for name in sorted(called - make_targets(makefile))
    ]
