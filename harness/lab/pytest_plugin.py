"""The pytest plugin: scenarios as tests, and labs as a fixture.

    @pytest.mark.windtunnel("loss/reliable-2pct", seeds=5)
    def test_loss(windtunnel_run): ...              after the run, if it passed

    async def test_feed(windtunnel):
        async with windtunnel.lab(hosts=["a", "b"], loss="2%") as lab: ...

pytest loads this module in every session of an environment that has Windtunnel, so it imports the
harness only where a test needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.harness.lab.fidelity import FIDELITIES, NotPossible, NotSupported, choose
from windtunnel.harness.lab.verdict import UNSUPPORTED, Verdict

if TYPE_CHECKING:
    from windtunnel.harness.lab.labs_of_test import Windtunnel
    from windtunnel.harness.lab.scenario_run import ScenarioRun
    from windtunnel.harness.scenario.loader import LoadedScenario
    from windtunnel.harness.scenario.schema.model import Scenario

MARKER = "windtunnel"
RUN_FIXTURE = "windtunnel_run"
SEED_MAX = (1 << 63) - 1
MARKER_HELP = (
    "windtunnel(scenario, *, seeds=1, seed=None, allow_commands=False): run a scenario of "
    "Windtunnel before the test, once for each seed. The test fails unless the run passes."
)
_MARKER_KEYS = {"seeds", "seed", "allow_commands"}


def _seed(text: str) -> int:
    if text.isdecimal() and int(text) <= SEED_MAX:
        return int(text)
    raise ValueError


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("windtunnel", "Windtunnel: Aeron under packet loss and delay")
    group.addoption(
        "--windtunnel-fidelity",
        choices=FIDELITIES,
        help="Fidelity of all runs and labs: network namespaces, containers or a simulation. "
        "Tests that do not support it are skipped. Default: netns where the machine supports it, "
        "else sim.",
    )
    group.addoption(
        "--windtunnel-seed",
        type=_seed,
        metavar="N",
        help="Seed of labs, and first seed of each scenario. Default: from the test or scenario.",
    )
    group.addoption(
        "--windtunnel-driver",
        default="ours",
        metavar="PEER",
        help="Media driver of all hosts: ours, pyaeron for Aeron's C driver, java, aeronmd:/path, "
        "or image:NAME in containers. Default: ours.",
    )
    group.addoption(
        "--windtunnel-out",
        type=Path,
        metavar="DIR",
        help="Folder of the run folders. Default: runs, in the root folder of the tests.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)


def out_folder(config: pytest.Config) -> Path:
    """Return the folder of the run folders."""
    given: Path | None = config.getoption("--windtunnel-out")
    return (given or config.rootpath / "runs").resolve()


# ---- scenarios as tests ----


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = _marker_of(metafunc.definition)
    if marker is None:
        return
    name, file, variants = _scenario_of(marker, metafunc.definition.path.parent)
    config = metafunc.config
    given, own = config.getoption("--windtunnel-seed"), marker.kwargs.get("seed")
    allow_commands = marker.kwargs.get("allow_commands", False)
    cases, names = [], []
    for each in variants:
        root = each.scenario.seeds.root
        first = next(seed for seed in (given, own, root) if seed is not None)
        count = marker.kwargs.get("seeds", 1)
        if first + count - 1 > SEED_MAX:
            raise pytest.Collector.CollectError(
                f"@pytest.mark.{MARKER}: expected seeds up to {SEED_MAX}, found {count} from "
                f"{first} on"
            )
        for seed in range(first, first + count):
            cases.append((file, each.scenario, seed, allow_commands, each.settings))
            values = "".join(f"-{text}" for text in each.settings.values())
            names.append(f"{name}{values}-seed{seed}")
    if RUN_FIXTURE not in metafunc.fixturenames:
        metafunc.fixturenames.append(RUN_FIXTURE)
    metafunc.parametrize(RUN_FIXTURE, cases, indirect=True, ids=names)


def _marker_of(test: pytest.Item) -> pytest.Mark | None:
    """Return the marker of a test, or of its class or module. Raises CollectError if there are two
    at the same place, because only one scenario can run before a test.
    """
    for node in reversed(test.listchain()):
        found = [each for each in node.own_markers if each.name == MARKER]
        if len(found) > 1:
            named = ", ".join(repr(each.args[0]) if each.args else "none" for each in found)
            raise pytest.Collector.CollectError(
                f"@pytest.mark.{MARKER}: expected one scenario for {test.name}, found {named}; "
                "write a test for each of them"
            )
        if found:
            return found[0]
    return None


def _scenario_of(marker: pytest.Mark, folder: Path) -> tuple[str, Path, list[LoadedScenario]]:
    """Return the name, the file and the variants of the scenario that a marker names."""
    import click

    from windtunnel.harness.cli import scenarios
    from windtunnel.harness.orchestrate.scenario_file import load_all_runnable
    from windtunnel.harness.scenario.loader import ScenarioError

    _check_marker(marker)
    name = marker.args[0]
    try:
        beside = folder / name
        file = (beside if beside.is_file() else scenarios.find(name)).resolve()
        return name, file, load_all_runnable(file)
    except click.UsageError as error:
        text = f"{error.message} A file is looked up beside the test file, in {folder}."
        raise pytest.Collector.CollectError(f"@pytest.mark.{MARKER}: {text}") from None
    except ScenarioError as error:
        raise pytest.Collector.CollectError(f"@pytest.mark.{MARKER}: {error}") from None


def _check_marker(marker: pytest.Mark) -> None:
    """Raise CollectError unless a marker's arguments have the right types."""
    problem = ""
    unknown = sorted(set(marker.kwargs) - _MARKER_KEYS)
    seeds, seed = marker.kwargs.get("seeds", 1), marker.kwargs.get("seed", 0)
    allow_commands = marker.kwargs.get("allow_commands", False)
    if len(marker.args) != 1 or not isinstance(marker.args[0], str):
        problem = f"expected one scenario's name or file, found {marker.args!r}"
    elif unknown:
        problem = f"unknown arguments {', '.join(unknown)}: expected {MARKER_HELP.split(':')[0]}"
    elif type(seeds) is not int or not 1 <= seeds <= 10_000:
        problem = f"expected `seeds` from 1 to 10000, found {seeds!r}"
    elif seed is not None and (type(seed) is not int or not 0 <= seed <= SEED_MAX):
        problem = f"expected `seed` from 0 to {SEED_MAX}, found {seed!r}"
    elif type(allow_commands) is not bool:
        problem = f"expected `allow_commands` True or False, found {allow_commands!r}"
    if problem:
        raise pytest.Collector.CollectError(f"@pytest.mark.{MARKER}: {problem}")


class MarkedRun:
    """The run of a marked test's scenario."""

    def __init__(
        self,
        file: Path,
        scenario: Scenario,
        seed: int,
        allow_commands: bool,
        settings: Mapping[str, str],
    ) -> None:
        self.scenario = scenario.name
        self.seed = seed
        self._file = file
        self._supported = scenario.fidelity
        self._allow_commands = allow_commands
        self._settings = settings
        self._verdict: Verdict | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict. It is known when the test's function begins, not in fixtures."""
        if self._verdict is None:
            raise RuntimeError(f"{self.scenario} has not run yet: it runs after all fixtures")
        return self._verdict

    def execute(self, config: pytest.Config) -> Verdict:
        """Run the scenario. Skips or fails the test if it cannot be run."""
        from windtunnel.harness.lab.scenario_run import RunError, ScenarioRun

        fidelity = chosen_fidelity(config, self._supported, f"scenario {self.scenario}")
        run: ScenarioRun = ScenarioRun(
            file=self._file,
            scenario=self.scenario,
            seed=self.seed,
            fidelity=fidelity,
            out=out_folder(config),
            allow_commands=self._allow_commands,
            driver=config.getoption("--windtunnel-driver"),
            settings=self._settings,
        )
        try:
            self._verdict = run.execute()
        except RunError as error:
            problem = str(error)
        else:
            return self._verdict
        pytest.fail(problem, pytrace=False)


def chosen_fidelity(config: pytest.Config, supported: Any, what: str) -> str:
    """Return the fidelity level for a test, or skip or fail it with the reason."""
    try:
        return choose(supported, config.getoption("--windtunnel-fidelity"))
    except NotSupported as error:
        pytest.skip(f"{what}: {error}")
    except NotPossible as error:
        pytest.fail(f"{what}: {error}", pytrace=False)


@pytest.fixture
def windtunnel_run(request: pytest.FixtureRequest) -> MarkedRun:
    """The run of the scenario that the test's marker names."""
    if not hasattr(request, "param"):
        pytest.fail(f"{RUN_FIXTURE} needs @pytest.mark.{MARKER}(scenario)", pytrace=False)
    return MarkedRun(*request.param)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a marked test of `unittest.TestCase`, for which pytest does not call the other hooks, so
    that no scenario would run before it.
    """
    if isinstance(item, pytest.Function) and item.get_closest_marker(MARKER) and not _case_of(item):
        text = "expected a function, or a method of a class that is no unittest.TestCase"
        pytest.fail(f"@pytest.mark.{MARKER}: {text}, found {item.name}", pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    case = _case_of(pyfuncitem)
    if case is None:
        return (yield)
    given = pyfuncitem.funcargs.get(RUN_FIXTURE)
    run = given if isinstance(given, MarkedRun) else MarkedRun(*case)
    verdict = run.execute(pyfuncitem.config)
    note_run(pyfuncitem, verdict)
    if verdict.outcome == UNSUPPORTED:
        pytest.skip(f"scenario {run.scenario}: {verdict.reason}")
    if not verdict.passed:
        text = f"scenario {run.scenario}, seed {run.seed}: {verdict.text}"
        pytest.fail(text, pytrace=False)
    try:
        return (yield)
    except Exception as error:
        error.add_note("\n".join(verdict.places()))
        raise


def _case_of(item: pytest.Function) -> Any:
    """Return the scenario and seed of a test case, or None if its test has no marker."""
    spec = getattr(item, "callspec", None)
    return None if spec is None else spec.params.get(RUN_FIXTURE)


# ---- labs ----


@pytest.fixture
def windtunnel(request: pytest.FixtureRequest) -> Iterator[Windtunnel]:
    """Opens labs: hosts with media drivers, links between them, and the test's own programs."""
    # Programs of this machine are not in containers, so containers must be requested explicitly.
    is_requested = request.config.getoption("--windtunnel-fidelity") is not None
    supported = ("netns", "compose") if is_requested else ("netns",)
    fidelity = chosen_fidelity(request.config, supported, "a lab")
    from windtunnel.harness.lab.labs_of_test import Windtunnel as Labs

    node = request.node
    labs = Labs(
        test=node.nodeid,
        name=node.name,
        folder=node.path.parent,
        out=out_folder(request.config),
        seed=request.config.getoption("--windtunnel-seed"),
        driver=request.config.getoption("--windtunnel-driver"),
        fidelity=fidelity,
        on_verdict=lambda verdict: note_run(node, verdict),
    )
    yield labs
    for verdict in labs.unread_failures():
        text = "the test did not read the verdict of its lab, for example with "
        warnings.warn(f"{text}`lab.verdict.assert_passed()`: {verdict.text}", stacklevel=1)


def note_run(item: pytest.Item, verdict: Verdict) -> None:
    """Add a run to the properties of a test, which JUnit files contain."""
    item.user_properties.append(("windtunnel_outcome", verdict.outcome))
    item.user_properties.append(("windtunnel_run", str(verdict.run_dir)))
    if verdict.report is not None:
        item.user_properties.append(("windtunnel_report", str(verdict.report)))
