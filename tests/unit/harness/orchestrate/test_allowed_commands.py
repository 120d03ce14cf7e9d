"""Programs that a scenario names are started only if the user allows it."""

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE
from windtunnel.harness.orchestrate.scenario_file import load_runnable
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
