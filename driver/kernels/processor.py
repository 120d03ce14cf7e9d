"""Selects the x86-64 level that kernels are compiled for, instead of this machine's processor
model.

Kernels that were compiled on one machine then run on every other machine of the same level, so they
can be distributed in a wheel, in a container image, or in a cache shared by CI machines.

`NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` take precedence. On other processors than x86-64, or below
the lowest level, kernels are compiled for exactly this processor. Source: x86-64 psABI,
microarchitecture levels.
"""

import os
import platform
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

_V2 = ("cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3")
_V3 = (*_V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave")
LEVELS = {"x86-64-v3": _V3, "x86-64-v2": _V2}
"""The x86-64 levels, highest first, with the processor features that each one requires. Levels have
LLVM's names, and features have Linux's names.
"""


def levels_of(features: Collection[str]) -> list[str]:
    """Return the x86-64 levels that the given processor features support, highest first."""
    return [
        level for level, required in LEVELS.items() if all(each in features for each in required)
    ]


@cache
def _features() -> frozenset[str]:
    """Return the features of this machine's processors by their Linux names, or an empty set if
    they are unknown.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    named = (line.partition(":")[2] for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(named, "").split())


def levels() -> list[str]:
    """Return the x86-64 levels that this machine supports, highest first."""
    return levels_of(_features()) if platform.machine() == "x86_64" else []


def is_native() -> bool:
    """Return whether this machine can load compiled kernels from the cache."""
    return platform.machine() == "x86_64" and os.uname().sysname == "Linux"


def target() -> str:
    """Return the name of the processor that kernels are compiled for. Cache keys contain
    this name.
    """
    chosen = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    if chosen != [None, None]:
        # A level without additional features is what `select` chooses by itself.
        is_level = chosen[0] in LEVELS and chosen[1] == ""
        return str(chosen[0]) if is_level else " ".join(str(each) for each in chosen)
    found = levels()
    return found[0] if found else " ".join((platform.machine(), *sorted(_features())))


def select(settings: Any) -> None:
    """Set the target processor in numba's settings, unless the user has already set it."""
    found = levels()
    if found and settings.CPU_NAME is None and settings.CPU_FEATURES is None:
        settings.CPU_NAME = found[0]
        settings.CPU_FEATURES = ""
