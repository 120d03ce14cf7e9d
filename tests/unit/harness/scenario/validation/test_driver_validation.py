"""Settings of the drivers of a scenario's hosts."""

import pytest

from tests.unit.harness.scenario.applications.sample import SAMPLE, resolved
from tests.unit.harness.scenario.test_scenario_loader import GOOD, faults_of
from windtunnel.driver.media_driver.context import SETTINGS
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.scenario.applications.driver_settings import SET_OTHERWISE, SETTING_NAMES
from windtunnel.harness.scenario.explain.explain import explain
from windtunnel.harness.scenario.resolved.case import Case

DRIVERS = "drivers: {a: {AERON_SOCKET_SO_RCVBUF: 2m, AERON_SPIES_SIMULATE_CONNECTION: true}}\n"
TEXT = SAMPLE.replace("budget:", f"{DRIVERS}budget:")


def test_the_names_are_those_of_the_driver_except_directories():
    known = {each.variable for each in SETTINGS.values()}
    own = {each for each in known if not each.startswith("AERON_")}
    assert known - own - SETTING_NAMES - set(SET_OTHERWISE) == {
        each for each in known if each.startswith("AERON_DIR")
    }
    assert known > SETTING_NAMES


def test_settings_are_strings_as_a_driver_reads_them(tmp_path):
    case = resolved(TEXT)
    assert case.drivers == {
        "a": {"AERON_SOCKET_SO_RCVBUF": "2m", "AERON_SPIES_SIMULATE_CONNECTION": "true"}
    }
    case.write(tmp_path / "case.json")
    assert Case.read(tmp_path / "case.json") == case
    assert "  driver of host a: AERON_SOCKET_SO_RCVBUF=2m" in explain(case)


def test_a_case_with_another_variable_is_refused(tmp_path):
    resolved(TEXT).model_copy(update={"drivers": {"a": {"LD_PRELOAD": "x"}}}).write(
        tmp_path / "case.json"
    )
    with pytest.raises(DocumentError, match=r"drivers\.a"):
        Case.read(tmp_path / "case.json")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("{a:", "{c:", "drivers.c: expected a host of the network, found 'c'"),
        ("SO_RCVBUF", "SO_RCVBUG", "did you mean AERON_SOCKET_SO_RCVBUF"),
        ("AERON_SOCKET_SO_RCVBUF", "LD_PRELOAD", "drivers.a.LD_PRELOAD: expected a driver's sett"),
        (
            "AERON_SOCKET_SO_RCVBUF: 2m",
            "AERON_DRIVER_TIMEOUT: 5",
            "write `timeouts: {driver",
        ),
        ("2m", "[2]", "drivers.a.AERON_SOCKET_SO_RCVBUF: expected a text"),
    ],
)
def test_locates_an_error(old, new, fault):
    assert any(fault in each for each in faults_of(TEXT.replace(old, new)))


@pytest.mark.parametrize("text", [GOOD, TEXT.replace("drivers:", "exercises: [spies]\ndrivers:")])
def test_streams_of_our_driver_are_judged_with_defaults(text):
    text = text.replace("faults:\n", f"{DRIVERS}faults:\n")
    assert any("drivers: `traffic` and `exercises` are judged" in each for each in faults_of(text))
