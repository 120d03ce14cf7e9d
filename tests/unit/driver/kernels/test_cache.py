"""Compiled kernels are stored once, are never stale, and are rejected if other users can write
them.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from windtunnel.driver.kernels import cache
from windtunnel.driver.kernels.cache import KernelCacheError, require_trusted
from windtunnel.driver.kernels.sources import CACHE_VARIABLE, FILE_NAME, SOURCE_ROOT

CALLEE = """
from windtunnel.driver.kernels.jit import kernel
FACTOR = {factor}
@kernel
def scaled(value):
    return value * FACTOR
"""
CALLER = """
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver import callee
@kernel
def twice(value):
    return callee.scaled(value) + callee.scaled(value)
"""
TWINS = """
from windtunnel.driver.kernels.jit import kernel
def made(sign):
    if sign > 0:
        @kernel
        def f(x):
            return x + 1
    else:
        @kernel
        def f(x):
            return x + 2
    return f
print(made(1)(0), made(-1)(0))
"""
TWICE_SEVEN = "from windtunnel.driver.caller import twice; print(twice(7))"
COMPILE_FIRST = """
from windtunnel.driver.kernels.jit import compile_for
from windtunnel.driver.caller import twice
compile_for(twice, (0,))
import sys
print(twice(7), len(twice.signatures), "numba" in sys.modules)
"""
Run = Callable[..., tuple[str, dict[Path, int]]]


def make_tree(tree: Path) -> Path:
    """A package `windtunnel` with two kernels, one of which calls the other."""
    driver = tree / "windtunnel" / "driver"
    shutil.copytree(SOURCE_ROOT / "driver" / "kernels", driver / "kernels")
    (driver / "__init__.py").write_text("")
    (driver / "callee.py").write_text(CALLEE.format(factor=3))
    (driver / "caller.py").write_text(CALLER)
    (driver / "twins.py").write_text(TWINS)
    return driver


@pytest.fixture
def driver(tmp_path):
    return make_tree(tmp_path / "one")


def execute(folder: Path, driver: Path, program: str, **more: str) -> tuple[str, dict[Path, int]]:
    """Run a program with a kernel cache in `folder`. Returns its output and the stored kernels."""
    kernels = folder / "cache"
    environment = {key: value for key, value in os.environ.items() if "NUMBA" not in key}
    # Python would serve stale bytecode of a file that changes within a second at one length.
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(driver.parents[1])}
    environment |= {CACHE_VARIABLE: str(kernels), **more}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1], stored(kernels)


def stored(kernels: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in kernels.rglob("*.image")}


@pytest.fixture
def run(tmp_path) -> Run:
    def run(driver: Path, program: str = TWICE_SEVEN, **more: str) -> tuple[str, dict[Path, int]]:
        return execute(tmp_path, driver, program, **more)

    return run


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A kernel cache that a first process has filled, for tests to copy: compiling takes long."""
    folder = tmp_path_factory.mktemp("compiled")
    output, built = execute(folder, make_tree(folder / "one"), TWICE_SEVEN)
    assert output == "42"
    assert built
    return folder / "cache"


@pytest.fixture
def built(compiled, tmp_path):
    """The kernels in this test's cache, as a first process has left them."""
    shutil.copytree(compiled, tmp_path / "cache")
    return stored(tmp_path / "cache")


def test_a_new_process_uses_no_stale_code_and_compiles_nothing_twice(driver, run, built):
    assert run(driver) == ("42", built)
    (driver / "callee.py").write_text(CALLEE.format(factor=4))
    changed, rebuilt = run(driver)
    assert changed == "56"
    assert built.items() < rebuilt.items()


def test_comments_docstrings_and_another_checkout_compile_nothing(driver, run, built, tmp_path):
    callee = driver / "callee.py"
    callee.write_text('"""A factor."""\n\n# and why\n' + callee.read_text())
    assert run(driver) == ("42", built)
    assert run(make_tree(tmp_path / "two")) == ("42", built)


COPY = """
import sys, windtunnel.driver.caller
from pathlib import Path
from windtunnel.driver.kernels.cache import copy_to
print(copy_to(Path(sys.argv[1])))
"""


def test_kernels_of_the_current_sources_can_be_copied(driver, run, built, tmp_path):
    (driver / "callee.py").write_text(CALLEE.format(factor=4))
    assert run(driver)[0] == "56"
    other = tmp_path / "other"
    other.mkdir()
    program = COPY.replace("sys.argv[1]", repr(str(other)))
    assert run(driver, program)[0] == "1"
    assert run(driver, program)[0] == "0"
    assert len(list((tmp_path / "cache").iterdir())) == 1 + 2
    assert len(list(other.iterdir())) == 1
    copied = {path.name for path in other.rglob("*.image")}
    output, _ = run(driver, TWICE_SEVEN, WINDTUNNEL_KERNEL_CACHE=str(other))
    assert output == "56"
    assert {path.name for path in other.rglob("*.image")} == copied


COPY_BESIDE_ANOTHER = """
import sys, windtunnel.driver.caller
from pathlib import Path
from windtunnel.driver.kernels import cache
copytree = cache.shutil.copytree
def copy_twice(source, partial):
    copytree(source, partial)
    copytree(source, partial.parent / source.name)
cache.shutil.copytree = copy_twice
print(cache.copy_to(Path(sys.argv[1])))
"""


def test_two_processes_can_copy_the_same_kernels(driver, run, built, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    program = COPY_BESIDE_ANOTHER.replace("sys.argv[1]", repr(str(other)))
    assert run(driver, program)[0] == "0"
    assert [path.name.startswith(".") for path in other.iterdir()] == [False]


@pytest.fixture
def prebuilt(compiled, tmp_path):
    """The folder that has the package of compiled kernels."""
    package = tmp_path / "site" / cache.PREBUILT
    shutil.copytree(compiled, package)
    return package.parent


def test_kernels_of_the_installed_package_are_not_compiled(driver, run, prebuilt):
    path = f"{driver.parents[1]}{os.pathsep}{prebuilt}"
    assert run(driver, PYTHONPATH=path) == ("42", {})
    assert run(driver)[1]


def test_kernels_that_the_installed_package_lacks_are_compiled(driver, run, prebuilt):
    (driver / "callee.py").write_text(CALLEE.format(factor=4))
    path = f"{driver.parents[1]}{os.pathsep}{prebuilt}"
    output, built = run(driver, PYTHONPATH=path)
    assert output == "56"
    assert built


COUNTS = "from windtunnel.driver.kernels.cache import prebuilt_counts; print(*prebuilt_counts())"


def test_modules_of_the_installed_package_are_counted(driver, run, prebuilt):
    assert run(driver, COUNTS)[0] == "0 0"
    path = f"{driver.parents[1]}{os.pathsep}{prebuilt}"
    assert run(driver, COUNTS, PYTHONPATH=path)[0] == "1 0"
    (driver / "callee.py").write_text(CALLEE.format(factor=4))
    assert run(driver, COUNTS, PYTHONPATH=path)[0] == "0 1"


def test_an_installed_package_that_others_can_write_to_is_refused(driver, run, prebuilt):
    (prebuilt / cache.PREBUILT).chmod(0o777)
    output, _ = run(driver, PYTHONPATH=f"{driver.parents[1]}{os.pathsep}{prebuilt}")
    assert "KernelCacheError" in output


@pytest.mark.full
def test_two_kernels_of_one_name_in_one_module_are_distinguished(driver, run):
    program = "import windtunnel.driver.twins"
    assert run(driver, program)[0] == "1 2"
    assert run(driver, program)[0] == "1 2"


def test_a_kernel_can_be_compiled_before_it_is_called(driver, run):
    output, built = run(driver, COMPILE_FIRST)
    assert output == "42 1 True"
    assert run(driver, COMPILE_FIRST) == ("42 1 False", built)


def test_a_bounds_checked_build_has_a_directory_of_its_own(monkeypatch):
    file = Path(cache.__file__)
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    before = cache.directory_name(file, "m")
    assert cache.directory_name(file, "n") != before
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert cache.directory_name(file, "m") != before


def test_without_compiling_kernels_are_plain_python(driver, run, tmp_path):
    assert run(driver, NUMBA_DISABLE_JIT="1") == ("42", {})
    assert not (tmp_path / "cache").exists()


DAMAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "one bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "other": lambda content: b"not an image",
}


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_kernel_is_recompiled(driver, run, built, damage):
    for path in built:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    output, rebuilt = run(driver, COMPILE_FIRST)
    assert output == "42 1 True"
    assert rebuilt.keys() == built.keys()
    assert run(driver, COMPILE_FIRST) == ("42 1 False", rebuilt)


def test_the_environment_selects_the_root(monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, "/somewhere/else")
    assert cache.cache_root() == Path("/somewhere/else")
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cache.cache_root() == Path("/cache/windtunnel/kernels")


# ---- compiled kernels are code ----


def test_directories_are_created_for_this_user_alone(compiled):
    folders = [compiled, *compiled.iterdir()]
    modes = {each.stat().st_mode & 0o777 for each in folders if each.is_dir()}
    assert modes == {0o700}
    assert (compiled / FILE_NAME).is_file()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o1777])
def test_a_cache_that_others_can_write_to_is_refused(driver, run, built, tmp_path, mode):
    (tmp_path / "cache").chmod(mode)
    output, _ = run(driver)
    assert "KernelCacheError" in output
    assert f"found owner {os.geteuid()} and mode {mode:04o}" in output


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
def test_a_cache_that_others_can_only_read_is_used(tmp_path, mode):
    tmp_path.chmod(mode)
    require_trusted.cache_clear()
    require_trusted(tmp_path)


def test_kernels_are_not_copied_from_a_cache_that_others_can_write_to(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    tmp_path.chmod(0o777)
    require_trusted.cache_clear()
    with pytest.raises(KernelCacheError, match="mode 0777"):
        cache.copy_to(tmp_path / "other")


def test_a_cache_of_another_user_is_refused(tmp_path, monkeypatch):
    require_trusted.cache_clear()
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path, 12345, 12345)
    with pytest.raises(KernelCacheError, match="found owner"):
        require_trusted(tmp_path)


def test_a_cache_that_does_not_exist_is_trusted(tmp_path):
    require_trusted(tmp_path / "none")
