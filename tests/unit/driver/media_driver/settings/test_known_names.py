"""Accepted variables, and hints for misspelt ones."""

from pathlib import Path

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.context import SETTINGS, from_environment
from windtunnel.driver.media_driver.settings.known_names import is_foreign, unknown_faults

OWN = [kind.variable for kind in SETTINGS.values()]
ALL = Path(__file__).with_name("aeron_variables.txt").read_text().split()
"""Every variable that the C sources of Aeron 1.53 read, and every Java property as a variable."""


def test_no_variable_of_aeron_is_unknown():
    assert len(ALL) > 150
    assert unknown_faults(ALL, OWN) == []


def test_every_setting_without_our_prefix_exists_in_aeron():
    assert {name for name in OWN if not name.startswith("WINDTUNNEL_")} <= set(ALL)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("AERON_TERM_BUFFER_LENGHT", "AERON_TERM_BUFFER_LENGTH"),
        ("AERON_SENDER_IDLE_STRATEGIE", "AERON_SENDER_IDLE_STRATEGY"),
        ("AERON_DIRS", "AERON_DIR"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(variable, meant):
    (fault,) = unknown_faults([variable, "HOME", "XAERON_DIRS"], OWN)
    assert fault == f"{variable} is not an Aeron setting; did you mean {meant}?"


def test_a_name_unlike_any_other_gets_no_suggestion():
    assert unknown_faults(["AERON_QQQQQQQQ"], OWN) == ["AERON_QQQQQQQQ is not an Aeron setting"]


def test_in_the_environment_only_a_misspelt_name_is_an_error():
    shared = ["AERON_RIG_ID", "AERON_TERM_BUFFER_LENGHT"]
    (fault,) = unknown_faults(shared, OWN, shared)
    assert fault.startswith("AERON_TERM_BUFFER_LENGHT ")
    assert len(unknown_faults(shared, OWN)) == 2


@pytest.mark.parametrize(
    "variable",
    [
        "AERON_ARCHIVE_DIR",
        "AERON_CLUSTER_ID",
        "AERON_ALL_JAR",
        "AERON_EVENT_LOG",
        "AERON_CLIENT_NAME",
    ],
)
def test_variables_of_other_programs_are_accepted(variable):
    assert is_foreign(variable)
    from_environment({variable: "anything"})


@pytest.mark.parametrize(
    ("variable", "harmless", "harmful"),
    [
        ("AERON_DRIVER_CPUSET_AFFINITY", "off", "true"),
        ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA", "default", "aeron_dpdk"),
        ("AERON_DRIVER_DYNAMIC_LIBRARIES", "", "libaeron_x.so"),
    ],
)
def test_settings_that_load_native_code_are_rejected(variable, harmless, harmful):
    from_environment({variable: harmless})
    with pytest.raises(ConfigurationError, match=f"{variable} is {harmful}"):
        from_environment({variable: harmful})
