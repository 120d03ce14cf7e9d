"""Kernels are compiled for the highest level of x86-64 whose features are all present."""

from types import SimpleNamespace

import pytest

from windtunnel.driver.kernels import processor

V2 = {"cx16", "lahf_lm", "pni", "popcnt", "sse4_1", "sse4_2", "ssse3"}
V3 = V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}


def settings(name=None, features=None):
    return SimpleNamespace(CPU_NAME=name, CPU_FEATURES=features)


@pytest.fixture
def features(monkeypatch):
    def set_features(found):
        monkeypatch.setattr(processor, "_features", lambda: frozenset(found))
        monkeypatch.setattr(processor.platform, "machine", lambda: "x86_64")

    return set_features


@pytest.mark.parametrize(
    ("found", "levels"),
    [
        (V3, ["x86-64-v3", "x86-64-v2"]),
        (V3 | {"avx512f"}, ["x86-64-v3", "x86-64-v2"]),
        (V3 - {"movbe"}, ["x86-64-v2"]),
        (V2, ["x86-64-v2"]),
        (V2 - {"popcnt"}, []),
        ({"neon"}, []),
        (set(), []),
    ],
)
def test_a_level_needs_all_of_its_features(features, found, levels):
    features(found)
    assert processor.levels() == levels


def test_linux_and_llvm_find_the_same_levels():
    from llvmlite import binding

    names = {"sahf": "lahf_lm", "sse3": "pni", "lzcnt": "abm", "bmi": "bmi1"}
    found = {
        names.get(name, name.replace(".", "_"))
        for name, is_present in binding.get_host_cpu_features().items()
        if is_present
    }
    assert processor.levels_of(found) == processor.levels()


def test_the_highest_level_is_selected(features):
    features(V3)
    chosen = settings()
    processor.select(chosen)
    assert chosen == settings("x86-64-v3", "")


def test_without_a_level_numba_uses_this_processor(features):
    features({"neon"})
    chosen = settings()
    processor.select(chosen)
    assert chosen == settings()


@pytest.mark.parametrize(("name", "options"), [("generic", ""), (None, "+avx2"), ("znver5", None)])
def test_an_explicit_processor_setting_is_kept(features, name, options):
    features(V3)
    chosen = settings(name, options)
    processor.select(chosen)
    assert chosen == settings(name, options)


def test_the_target_is_part_of_the_name_of_a_cache_directory(features, monkeypatch):
    for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.delenv(variable, raising=False)
    features(V3)
    assert processor.target() == "x86-64-v3"
    features(V2)
    assert processor.target() == "x86-64-v2"
    features({"sse2"})
    assert processor.target() == "x86_64 sse2"
    monkeypatch.setenv("NUMBA_CPU_NAME", "znver5")
    assert processor.target() == "znver5 None"


def test_kernels_built_for_a_level_are_those_that_a_processor_of_the_level_looks_for(
    features, monkeypatch
):
    """.ci/wheel.sh compiles for each level by name."""
    for level, found in (("x86-64-v3", V3), ("x86-64-v2", V2)):
        features(found)
        for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
            monkeypatch.delenv(variable, raising=False)
        wanted = processor.target()
        monkeypatch.setenv("NUMBA_CPU_NAME", level)
        monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
        assert processor.target() == wanted
        monkeypatch.setenv("NUMBA_CPU_FEATURES", "+adx")
        assert processor.target() != wanted
