"""Kernels are compiled for the highest level of x86-64 whose features are all present."""

from types import SimpleNamespace

import pytest

from windtunnel.driver.kernels import processor

V2 = dict.fromkeys(("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"), True)
V3 = V2 | dict.fromkeys(
    ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"), True
)


def settings(name=None, features=None):
    return SimpleNamespace(CPU_NAME=name, CPU_FEATURES=features)


@pytest.mark.parametrize(
    ("features", "levels"),
    [
        (V3, ["x86-64-v3", "x86-64-v2"]),
        (V3 | {"avx512f": True}, ["x86-64-v3", "x86-64-v2"]),
        (V3 | {"movbe": False}, ["x86-64-v2"]),
        (V2, ["x86-64-v2"]),
        ({name: True for name in V2 if name != "popcnt"}, []),
        ({"neon": True}, []),
        ({}, []),
    ],
)
def test_a_level_needs_all_of_its_features(features, levels):
    assert processor.levels_of(features) == levels


def test_the_highest_level_is_selected():
    chosen = settings()
    processor.select(chosen, V3)
    assert chosen == settings("x86-64-v3", "")


def test_without_a_level_numba_uses_this_processor():
    chosen = settings()
    processor.select(chosen, {"neon": True})
    assert chosen == settings()


@pytest.mark.parametrize(("name", "features"), [("generic", ""), (None, "+avx2"), ("znver5", None)])
def test_what_the_user_has_set_is_kept(name, features):
    chosen = settings(name, features)
    processor.select(chosen, V3)
    assert chosen == settings(name, features)
