"""Programs that a scenario names are started only if the user allows it."""

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE
from tests.unit.harness.scenario.test_own_checks import SCENARIO as OWN_CHECKS
from windtunnel.harness.orchestrate.scenario_file import load_runnable, require_runnable
from windtunnel.harness.orchestrate.suite import runner
from windtunnel.harness.scenario.loader import ScenarioError


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "made.yaml"
    found.write_text(SAMPLE)
    return found


def test_refuses_commands_by_default(file):
    with pytest.raises(ScenarioError) as raised:
        runner.plan([file], None, None)
    (text,) = raised.value.errors
    assert text.startswith(f"{file}: the scenario starts programs on this machine, such as `servi")
    assert text.endswith(f"`windtunnel run {file} --allow-commands`")


def test_plans_allowed_commands(file):
    (planned,) = runner.plan([file], None, None, allow_commands=True)
    assert planned.scenario == load_runnable(file)


@pytest.fixture
def own(tmp_path):
    """Return a scenario with own checks and without applications."""
    found = tmp_path / "own.yaml"
    found.write_text(OWN_CHECKS.format(checks="[checks.py]"))
    return found


def test_refuses_own_checks_by_default(own):
    with pytest.raises(ScenarioError) as raised:
        runner.plan([own], None, None)
    (text,) = raised.value.errors
    assert text.startswith(f"{own}: the scenario executes checks.py on this machine: read its")
    assert text.endswith(f"`windtunnel run {own} --allow-commands`")


def test_allowed_own_checks_must_exist_as_files(own):
    with pytest.raises(ScenarioError) as raised:
        runner.plan([own], None, None, allow_commands=True)
    (text,) = raised.value.errors
    assert text == f"{own}: checks: {own.parent / 'checks.py'}: No such file or directory"
    with pytest.raises(ScenarioError, match="No such file"):
        require_runnable([own], allow_commands=True)
    (own.parent / "checks.py").write_text("")
    (planned,) = runner.plan([own], None, None, allow_commands=True)
    assert planned.scenario.checks == ("checks.py",)
    assert require_runnable([own], allow_commands=True) == [planned.scenario]


def test_own_checks_of_a_replayed_run_are_left_out(own):
    (planned,) = runner.plan([own], None, None, has_own_checks=False)
    assert planned.scenario.checks == ()
