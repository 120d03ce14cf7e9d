"""Selects the processor to compile for: an x86-64 level instead of one processor model.

Kernels that were compiled on one machine then run on every other machine of the same level, so that
they can be part of a wheel, of a container image, or of a cache between CI machines.

`NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` take precedence. On other processors than x86-64, or below
the lowest level, kernels are compiled for exactly this processor. Source: x86-64 psABI,
microarchitecture levels.
"""

from collections.abc import Mapping
from typing import Any

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = {"x86-64-v3": _V3, "x86-64-v2": _V2}
"""LLVM's names for the levels, highest first, and for the features that each level requires."""


def levels_of(features: Mapping[str, bool]) -> list[str]:
    """Return the levels whose features are all present, the highest first."""
    return [
        level for level, required in LEVELS.items() if all(features.get(name) for name in required)
    ]


def select(settings: Any, features: Mapping[str, bool]) -> None:
    """Set the target processor in numba's settings, unless the user has set it."""
    levels = levels_of(features)
    if levels and settings.CPU_NAME is None and settings.CPU_FEATURES is None:
        settings.CPU_NAME = levels[0]
        settings.CPU_FEATURES = ""
