"""Sources of settings and their precedence."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.settings.command_line import read_given


def test_later_sources_override_earlier_ones_and_the_origin_is_recorded(tmp_path):
    path = tmp_path / "driver.properties"
    path.write_text("aeron.mtu.length=8k\naeron.max.resend=\n")
    given = read_given(
        {"AERON_MTU_LENGTH": "4k", "AERON_MAX_RESEND": "7", "AERON_RELIABLE_STREAM": "false"},
        ["-Daeron.mtu.length=2k", str(path), "-D", "aeron.timer.interval=2s", "--dir", "/x"],
    )
    assert given.texts == {
        "AERON_MTU_LENGTH": "8k",
        "AERON_RELIABLE_STREAM": "false",
        "AERON_TIMER_INTERVAL": "2s",
        "AERON_DIR": "/x",
    }
    origins = {
        name: given.origin_of(name) for name in [*given.texts, "AERON_MAX_RESEND", "AERON_NONE"]
    }
    assert origins == {
        "AERON_MTU_LENGTH": str(path),
        "AERON_RELIABLE_STREAM": "environment",
        "AERON_TIMER_INTERVAL": "-D",
        "AERON_DIR": "--dir",
        "AERON_MAX_RESEND": "default",
        "AERON_NONE": "default",
    }


def test_a_directory_may_follow_an_equals_sign():
    assert read_given({}, ["--dir=/y"]).texts == {"AERON_DIR": "/y"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dir"], "--dir requires a value"),
        (["-D"], "-D requires a value"),
        (["-Dname"], "expected name=value"),
        (["--verbose"], "unknown option --verbose"),
        (["https://x/y"], "not over HTTP"),
    ],
)
def test_an_invalid_command_line_is_rejected(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        read_given({}, arguments)


def test_the_callers_environment_is_not_changed():
    environment = {"AERON_MTU_LENGTH": "4k"}
    read_given(environment, ["-Daeron.mtu.length=8k"])
    assert environment == {"AERON_MTU_LENGTH": "4k"}
