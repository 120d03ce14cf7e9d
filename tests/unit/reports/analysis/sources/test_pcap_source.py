"""Options of the data source `aeron.pcap`."""

import pytest

from windtunnel.reports.analysis.reading.parts import ReadSettings
from windtunnel.reports.analysis.sources.pcap_source import CaptureOptionError, read_options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "expected a path"),
        ({"path": "a", "port": "1"}, "option 'port'"),
        ({"path": "a", "ports": "1,x"}, "invalid literal"),
        ({"path": "a", "ports": "70000"}, "port 70000: expected 1 to 65535"),
        ({"path": "a", "table": "rows"}, "table 'rows'"),
        ({"path": "a", "split": "no"}, "expected true or false"),
        ({"path": "a", "cell": "1"}, "cell of 1 bytes"),
        ({"path": "a", "parts": "-1"}, "-1 parts"),
        ({"paths": "a.pcap"}, "invalid options for aeron.pcap"),
    ],
)
def test_an_invalid_option_is_explained(options, text):
    with pytest.raises(CaptureOptionError, match=text):
        read_options(options)


def test_reads_all_options():
    paths, table, settings = read_options(
        {"paths": '["a", "b"]', "ports": "1, 2", "hash": "false", "parts": "3", "table": "captures"}
    )
    assert (paths, table) == (["a", "b"], "captures")
    assert settings == ReadSettings(ports=(1, 2), keeps_hash=False, parts=3)
