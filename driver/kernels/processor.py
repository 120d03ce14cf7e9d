"""Selects the processor to compile for: an x86-64 level instead of one processor model.

Kernels that were compiled on one machine then run on every other machine of the same level, so that
they can be part of a wheel, of a container image, or of a cache between CI machines.

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
"""LLVM's names for the levels, highest first, and for each level Linux's names for the features
that it requires.
"""


def levels_of(features: Collection[str]) -> list[str]:
    """Return the levels whose features are all present, the highest first."""
    return [
        level for level, required in LEVELS.items() if all(each in features for each in required)
    ]


@cache
def _features() -> frozenset[str]:
    """Return Linux's names for the features of this machine's processors, or none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    named = (line.partition(":")[2] for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(named, "").split())


def levels() -> list[str]:
    """Return the levels that this machine can execute, the highest first."""
    return levels_of(_features()) if platform.machine() == "x86_64" else []


def is_native() -> bool:
    """Return whether compiled kernels can be stored and loaded as images on this machine."""
    return platform.machine() == "x86_64" and os.uname().sysname == "Linux"


def target() -> str:
    """Return a name for the processor that kernels are compiled for, as part of the cache key."""
    chosen = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    if chosen != [None, None]:
        return " ".join(str(each) for each in chosen)
    found = levels()
    return found[0] if found else " ".join((platform.machine(), *sorted(_features())))


def select(settings: Any) -> None:
    """Set the target processor in numba's settings, unless the user has set it."""
    found = levels()
    if found and settings.CPU_NAME is None and settings.CPU_FEATURES is None:
        settings.CPU_NAME = found[0]
        settings.CPU_FEATURES = ""
