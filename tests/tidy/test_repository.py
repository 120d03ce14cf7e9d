"""Every text file of the repository follows the rules, except those that git ignores."""

import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.tidy import rules

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("driver", "harness", "reports")
IGNORED = {".git", ".venv", ".env", "__pycache__", ".hypothesis"}
IGNORED_AT_TOP = {"runs", "build"}
IGNORED_SUFFIXES = (".egg-info", "_cache")
TEXTS = {".py", ".md", ".sh", ".yaml", ".yml", ".toml", ".lock", ".html", ".css", ".txt", ""}
WIDTH_SUFFIXES = {".py", ".sh", ".yaml"}
PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)(?: ;.*)? \\$", re.M)


@cache
def texts() -> dict[str, str]:
    """Return every text file of the repository, by path."""
    found = {}
    for name, folders, files in os.walk(ROOT):
        ignored = IGNORED_AT_TOP if Path(name) == ROOT else set()
        folders[:] = [each for each in folders if not _is_ignored(each) and each not in ignored]
        for file in files:
            path = Path(name, file)
            relative = path.relative_to(ROOT).as_posix()
            if path.suffix in TEXTS and not _is_ignored(file) and not _is_golden(relative):
                found[relative] = path.read_text(encoding="utf-8")
    return found


def _is_ignored(name: str) -> bool:
    return name in IGNORED or name.endswith(IGNORED_SUFFIXES)


def _is_golden(relative: str) -> bool:
    """Return whether a file is golden data, to which the rules do not apply; a README is not."""
    return relative.startswith("tests/golden/") and not relative.endswith((".md", ".py"))


def python_texts() -> dict[str, str]:
    return {path: text for path, text in texts().items() if path.endswith(".py")}


def check(rule, where: dict[str, str]) -> None:
    faults = [fault for path, text in where.items() for fault in rule(path, text)]
    assert where, "expected texts, found none"
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "rule",
    [rules.too_many_lines, rules.long_functions, rules.modules_away_from_home],
    ids=lambda rule: rule.__name__,
)
def test_python_follows(rule):
    check(rule, python_texts())


def test_no_line_is_too_wide():
    check(
        rules.too_wide,
        {path: text for path, text in texts().items() if Path(path).suffix in WIDTH_SUFFIXES},
    )


@pytest.mark.parametrize(
    "rule",
    [rules.markers, rules.machine_paths, rules.registry_hosts],
    ids=lambda rule: rule.__name__,
)
def test_no_text_violates(rule):
    check(rule, {path: text for path, text in texts().items() if path != "tests/tidy/rules.py"})


def test_every_module_has_a_docstring():
    check(
        rules.no_module_docstring,
        {path: text for path, text in python_texts().items() if path.startswith(PACKAGES)},
    )


def test_every_folder_with_code_is_a_package():
    folders = {Path(path).parent for path in python_texts() if path.startswith(PACKAGES)}
    assert folders
    assert [str(each) for each in folders if f"{each}/__init__.py" not in texts()] == []


def test_docker_folder_is_not_a_package():
    assert not [path for path in texts() if re.fullmatch(r"docker/.*\.py", path)]


def test_no_link_is_broken():
    faults = []
    documents = [path for path in texts() if path.endswith(".md")]
    for path in documents:
        folder = (ROOT / path).parent
        faults += rules.broken_links(path, texts()[path], lambda to, at=folder: (at / to).exists())
    assert documents
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("path", [".ci/run", "README.md", "docker/README.md"])
def test_make_targets_that_are_named_exist(path):
    makefile = texts()["Makefile"]
    text = texts()[path]
    assert "make " in text, f"{path} names no make target"
    assert not rules.unknown_make_targets(path, text, makefile)


def test_make_help_describes_every_target():
    makefile = texts()["Makefile"]
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    described = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.M))
    assert phony == described == rules.make_targets(makefile)


def test_continuous_integration_runs_the_tests():
    assert re.search(r"^make test$", texts()[".ci/run"], re.M)


def pins(path: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in PIN.findall(texts()[path]):
        found.setdefault(name, set()).add(version)
    return found


def test_locks_contain_every_dependency_and_agree():
    project = tomllib.loads(texts()["pyproject.toml"])["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["setup"]]
    wanted_by_tests = [*needed, *project["optional-dependencies"]["test"]]
    run, test = pins("requirements.lock"), pins("requirements-test.lock")
    assert _names(needed) <= set(run), "run `make lock`"
    assert _names(wanted_by_tests) <= set(test), "run `make lock`"
    assert {name: test.get(name) for name in run} == run
    spark = pins("docker/requirements-spark.lock")
    assert not set(spark) & set(run), "run `make lock`"
    assert _names(project["optional-dependencies"]["spark"]) <= set(spark), "run `make lock`"
    assert {name: test.get(name) for name in spark} == spark


def _names(requirements: list[str]) -> set[str]:
    names = {re.match(r"[A-Za-z0-9._-]+", each)[0] for each in requirements}
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


@pytest.mark.parametrize(
    "path", ["requirements.lock", "requirements-test.lock", "docker/requirements-spark.lock"]
)
def test_locks_have_versions_and_hashes_and_no_addresses(path):
    text = texts()[path]
    assert "://" not in text
    assert "@ " not in text
    for entry in re.split(r"\n(?=\S)", text)[2:]:
        assert "--hash=sha256:" in entry, entry


def run_tool(*argv: str) -> None:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_linter_finds_nothing():
    run_tool(sys.executable, "-m", "ruff", "check", "--no-cache", ".")


def test_import_contracts_hold():
    run_tool(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
