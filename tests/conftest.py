"""Settings of all tests: the parts in which they run, their time limits and their CPU budget."""

import faulthandler
import gc
import os
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile(
    "windtunnel",
    deadline=None,
    database=None,
    # Some tests compile a kernel first.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("windtunnel")

HERE = Path(__file__).parent
SHARING = (
    "archive", "browser", "docs", "figures", "package", "peer", "property", "scenarios", "sim",
    "tidy", "unit",
)  # fmt: skip
"""Folders of tests that run beside other tests. The other folders need real networks, containers or
time, and their tests run in groups.
"""
NETWORKS = "netns"
OTHERS = "others"
GROUPS = (NETWORKS, "docker")
"""Folders of the second part whose tests run one at a time in a process of their own, beside those
of all other folders, which are one group. Each group leaves the namespaces, containers and files of
the others alone.
"""
MOVED = {
    **dict.fromkeys(
        (
            *("test_applications_guide", "test_lab_command", "test_nemesis", "test_plugin_"),
            *("test_python_echo", "test_replay"),
        ),
        OTHERS,
    ),
    "test_calibrate": "docker",
}
"""Files of `NETWORKS` that run in another group, because nothing in their labs depends on how busy
the machine is. With them, all groups take equally long.
"""
BUDGET_S = 240.0
"""CPU seconds that a test may use, its ended child processes included, unless it is marked `full`.

CPU time instead of wall time, so that a test does not fail because it waits for others. The CPU
time of the same test varies by a factor of three between machines, and with the load of the other
thread of its core: ten seeds of the real driver took 43 s and 83 s. A test should use less than
60 s on a machine that has nothing else to do. Most of it is compilation, if the kernel cache is
empty. The processes of a fork server are not children of the test, and are not counted.
"""
LATE_S = 60
"""Seconds that a phase of a test may exceed the test's time limit before the whole run ends."""
SLACK_S = 10
"""Seconds by which that end may be late."""
_STDERR = pytest.StashKey[int]()
_CPU_S = pytest.StashKey[float]()
_ENDS_AT_S = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "only the folders of tests that run beside others, or only the other folders"
    parser.addoption("--part", choices=("sharing", "alone"), help=help_text)
    parser.addoption("--full", action="store_true", help="also run the tests marked `full`")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    part = config.getoption("part")
    if part is None or collection_path.parent != HERE or not collection_path.is_dir():
        return None
    return (collection_path.name in SHARING) != (part == "sharing") or None


class _Groups(LoadScopeScheduling):
    """Runs the tests of each group in one process.

    `--dist loadgroup` of pytest-xdist 3.8 has no effect with pytest 9.2, which has no names of
    groups in the names of tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder, _, name = nodeid.removeprefix(f"{HERE.name}/").partition("/")
        moved = [group for each, group in MOVED.items() if name.startswith(each)]
        return moved[0] if moved else folder if folder in GROUPS else OTHERS


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    return _Groups(config, log) if config.getoption("part") == "alone" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are not to run, and order the files by their time limits.

    A file runs in one process. If a long one started last, the other processes would wait for it.
    """
    if not config.getoption("full"):
        left_out = _only_full(items)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
    limits_s: dict[Path, float] = {}
    for item in items:
        limits_s[item.path] = max(_limit_s(item), limits_s.get(item.path, 0.0))
    items.sort(key=lambda item: -limits_s[item.path])


def _only_full(items: list[pytest.Item]) -> dict[pytest.Item, None]:
    """Return the tests that only `--full` runs, in order.

    Of a test that is marked `full(keep=3)`, three variants are kept, evenly spread over the order
    of their names: the tests may be shuffled.
    """
    left_out: dict[pytest.Item, None] = {}
    variants: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("full")
        if marker is None:
            continue
        left_out[item] = None
        if marker.kwargs:
            variants[item.nodeid.partition("[")[0]].append(item)
    for of_test in variants.values():
        of_test.sort(key=lambda item: item.nodeid)
        keep = of_test[0].get_closest_marker("full").kwargs["keep"]
        for kept in {index * len(of_test) // keep for index in range(keep)}:
            del left_out[of_test[kept]]
    return left_out


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collected tests away from the garbage collector.

    They live to the end. Each full collection, while tests are added, and also those that tests and
    the end of the interpreter ask for, would visit all of their objects, which takes 0.7 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Free what a test leaves behind, when the test and its fixtures have ended.

    A driver refers to itself in a few hundred objects, and holds tens of megabytes in mapped files.
    The collector counts objects, not bytes: it would wait for many tests, and the process grow to
    gigabytes. Such objects are young, so the older ones need not be visited.

    The limit of a test that has ended must not end a worker that waits for its next test.
    """
    result = yield
    gc.collect(1)
    if _is_next_unknown(item.config):
        _end_after(0.0, item.config)
    return result


def _is_next_unknown(config: pytest.Config) -> bool:
    """Return whether this is a worker of pytest-xdist without a further test in its queue."""
    workers = [each for each in config.pluginmanager.get_plugins() if hasattr(each, "torun")]
    for each in workers:
        with each.torun.lock() as waiting:
            return not waiting
    return False


def pytest_configure(config: pytest.Config) -> None:
    # Output is not captured yet.
    config.stash[_STDERR] = os.dup(2)
    # Under nohup, or in the background of a script, they are ignored. Processes inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _limit_s(item: pytest.Item) -> float:
    """Return the time limit of a test, or 0 if it has none."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout") or 0)


def _limited(item: pytest.Item) -> Generator[None, object, object]:
    """End the run, with the stack of every thread, if pytest-timeout cannot end the test.

    pytest-timeout raises an exception in the main thread once. That does not interrupt machine
    code, and it happens only once, so not in the teardown of a test that timed out.
    """
    limit_s = _limit_s(item)
    _end_after(limit_s + LATE_S if limit_s else 0.0, item.config)
    started_s = _cpu_s()
    try:
        return (yield)
    finally:
        item.stash[_CPU_S] = item.stash.get(_CPU_S, 0.0) + _cpu_s() - started_s


def _end_after(limit_s: float, config: pytest.Config) -> None:
    """End the process in `limit_s` at the earliest and `SLACK_S` later at the latest; 0: never.

    Each change of that time stops a thread and starts another, which takes a millisecond.
    """
    now_s = time.monotonic()
    if not limit_s:
        config.stash[_ENDS_AT_S] = 0.0
        faulthandler.cancel_dump_traceback_later()
    elif not limit_s <= config.stash.get(_ENDS_AT_S, 0.0) - now_s <= limit_s + SLACK_S:
        config.stash[_ENDS_AT_S] = now_s + limit_s + SLACK_S
        stderr = config.stash[_STDERR]
        faulthandler.dump_traceback_later(limit_s + SLACK_S, exit=True, file=stderr)


def pytest_unconfigure() -> None:
    faulthandler.cancel_dump_traceback_later()


pytest_runtest_setup = pytest.hookimpl(wrapper=True, tryfirst=True)(_limited)
pytest_runtest_call = pytest.hookimpl(wrapper=True, tryfirst=True)(_limited)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True, tryfirst=True)(_limited)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test whose setup and call used more CPU time than its budget."""
    report = yield
    used_s = item.stash.get(_CPU_S, 0.0)
    marker = item.get_closest_marker("full")
    limited = call.when == "call" and report.passed and (marker is None or marker.kwargs)
    if limited and used_s > BUDGET_S:
        report.outcome = "failed"
        report.longrepr = (
            f"used {used_s:.1f} s of CPU time, the budget is {BUDGET_S:g} s: make the test "
            "cheaper, or mark it `full`"
        )
    return report


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
