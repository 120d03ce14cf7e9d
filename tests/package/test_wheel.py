"""The wheel, installed into an empty environment, works from an empty directory.

checkout --copy--> wheel --install--> environment with the locked dependencies, nothing else of ours
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.stand_ins.plugin_project import run_pytest
from windtunnel.driver.kernels.sources import CACHE_VARIABLE, cache_root
from windtunnel.harness.lab.fidelity import obstacle_to

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = ("driver", "harness", "reports", "scenarios")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
SCENARIO = "loss/reliable-2pct"
SHORT = "exam/no-faults"

# Building takes seconds, and the run compiles kernels that this checkout's cache lacks.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    for folder in BUILT_FROM:
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in FILES:
        shutil.copy(ROOT / name, source)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(out), "."],
        cwd=source, check=True, timeout=300,
    )  # fmt: skip
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The `bin` of a virtual environment that has the wheel, with our dependencies on its path.

    The folder of the dependencies is added by name, so that its .pth file, which makes this
    checkout importable, is not processed. Modules are compiled when they are first imported, since
    the tests import only some of them.
    """
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install",
         "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile",
         str(wheel)],
        check=True, timeout=300,
    )  # fmt: skip
    return home / "bin"


def run(environment, folder, *argv, timeout=500):
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(environment / argv[0]), *argv[1:]],
        cwd=folder, env=variables | {CACHE_VARIABLE: str(cache_root())},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def test_it_installs_one_package_with_all_of_its_files(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"windtunnel"}
    tracked = [
        path.relative_to(ROOT).as_posix()
        for folder in BUILT_FROM
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(tracked) > 900
    assert [name for name in tracked if f"windtunnel/{name}" not in names] == []


def test_its_modules_are_the_installed_ones(environment, tmp_path):
    program = "import windtunnel.driver as d, windtunnel.harness.installation as i; "
    program += "print(d.__file__); print(i.ROOT, i.is_checkout())"
    done = run(environment, tmp_path, "python", "-c", program)
    first, second = done.stdout.splitlines()
    assert str(environment.parent) in first
    assert second == f"{Path(first).parents[1]} False"


def test_it_lists_scenarios(environment, tmp_path):
    done = run(environment, tmp_path, "windtunnel", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert SCENARIO in done.stdout


def test_it_runs_a_scenario_from_an_empty_directory(environment, tmp_path):
    argv = ("windtunnel", "run", SHORT, "--fidelity", "sim", "--seed", "7", "--json")
    done = run(environment, tmp_path, *argv)
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = [
        document["outcome"]
        for line in done.stdout.splitlines()
        if line.startswith("{") and (document := json.loads(line)).get("kind") == "run"
    ]
    assert outcomes == ["PASS"]
    assert list((tmp_path / "runs").rglob("verdict.json"))


@pytest.mark.full
def test_containers_need_a_checkout(environment, tmp_path):
    done = run(environment, tmp_path, "windtunnel", "run", SCENARIO, "--fidelity", "compose")
    assert done.returncode == 3
    assert "fidelity compose needs a checkout of Windtunnel" in done.stderr


@pytest.mark.full
def test_the_example_of_the_client_runs(environment, tmp_path):
    """The first Python example of docs/python.md, against a driver of the installed program."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    directory = tmp_path / "aeron"
    assert '"/dev/shm/aeron-me"' in example
    example = example.replace('"/dev/shm/aeron-me"', repr(str(directory)))
    program = (
        "from windtunnel.driver.media_driver.context import Context\n"
        "from windtunnel.driver.media_driver.media_driver import MediaDriver\n"
        f"with MediaDriver(Context(dir={str(directory)!r}, threading_mode='SHARED')):\n"
        + "".join(f"    {line}\n" if line else "\n" for line in example.splitlines())
    )
    (tmp_path / "example.py").write_text(program)
    done = run(environment, tmp_path, "python", "example.py", timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "b'hello'\n"


@pytest.mark.full
def test_own_checks_are_executed(environment, tmp_path):
    text = (ROOT / "docs" / "own-checks.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"```\w+\n# ([\w.]+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(content)
    argv = ("windtunnel", "run", "feed.yaml", "--fidelity", "sim", "--allow-commands")
    done = run(environment, tmp_path, *argv)
    assert done.returncode == 0, done.stdout + done.stderr
    (stored,) = (tmp_path / "runs").rglob("own-checks.json")
    (file,) = json.loads(stored.read_text())["files"]
    assert [each["outcome"] for each in file["checks"]] == ["PASS", "PASS"]


PLUGIN_TESTS = """
import pytest

@pytest.mark.windtunnel("loss/reliable-2pct", seed=7)
def test_scenario(windtunnel_run):
    assert windtunnel_run.verdict.results[0]["lost_frames"] > 0

async def test_lab(windtunnel):
    async with windtunnel.lab(loss="1%", delay="2ms") as lab:
        program = await lab.start("a", ["python", "-c", "import windtunnel.harness as h; print(h)"])
        await program.exited(within=60)
        async with lab.link("a-b").partitioned():
            pass
    lab.verdict.assert_passed()
    assert "site-packages" in program.log_text()
"""


@pytest.mark.full
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_plugin_works_in_a_project_of_its_own(environment, tmp_path, workers):
    (tmp_path / "test_feed.py").write_text(PLUGIN_TESTS)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    session = run_pytest(
        tmp_path, *workers, "-rs", "--windtunnel-out", "kept",
        python=str(environment / "python"), timeout_s=500,
        variables=kept | {CACHE_VARIABLE: str(cache_root())},
    )  # fmt: skip
    can_have_labs = not obstacle_to("netns")
    expected = {"passed": 2} if can_have_labs else {"passed": 1, "skipped": 1}
    assert session.counts == expected, session.output
    assert "windtunnel-0.1.0" in session.output
    assert len(list((tmp_path / "kept").glob("*/*/verdict.json"))) == expected["passed"]
