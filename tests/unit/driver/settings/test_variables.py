"""The settings of a context from the environment."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.uri_value import parse_int32
from windtunnel.driver.settings.kinds import parse_flag
from windtunnel.driver.settings.variables import read_variables, text

FIELDS = {
    "name": ("AERON_NAME", text),
    "stream_id": ("AERON_STREAM", parse_int32),
    "is_sparse": ("AERON_SPARSE", parse_flag),
}


def test_only_variables_that_are_set_and_not_overridden_are_read():
    environment = {"AERON_NAME": "x", "AERON_STREAM": "9", "AERON_SPARSE": "", "HOME": "/"}
    assert read_variables(FIELDS, environment, ()) == {"name": "x", "stream_id": 9}
    assert read_variables(FIELDS, environment, {"stream_id": 4}) == {"name": "x"}


def test_none_is_the_environment_of_the_process(monkeypatch):
    monkeypatch.setenv("AERON_NAME", "mine")
    assert read_variables(FIELDS, None, ()) == {"name": "mine"}


@pytest.mark.parametrize(("variable", "value"), [("AERON_STREAM", "ten"), ("AERON_SPARSE", "yes")])
def test_an_invalid_variable_is_named(variable, value):
    with pytest.raises(ConfigurationError, match=f"{variable}={value}"):
        read_variables(FIELDS, {variable: value}, ())
