"""Formatting of the settings."""

import json

from windtunnel.driver.media_driver import settings_table
from windtunnel.driver.media_driver.context import SETTINGS, Context
from windtunnel.driver.media_driver.settings.loss_interceptors import RandomLoss


def test_every_setting_is_listed_with_its_default_and_bounds():
    text = settings_table.describe()
    rows = json.loads(settings_table.describe_json())["settings"]
    assert [row["variable"] for row in rows] == [kind.variable for kind in SETTINGS.values()]
    for row in rows:
        assert all(len(row[key]) > 1 for key in ("name", "bounds", "meaning")), row
        assert row["variable"] in text
    found = {row["name"]: row for row in rows}
    assert found["mtu_length"]["default"] == "1408"
    assert found["mtu_length"]["bounds"] == "from 64 to 65504"
    assert found["term_buffer_length"]["default"] == "16m"
    assert found["threading_mode"]["bounds"] == "DEDICATED or SHARED_NETWORK or SHARED or INVOKER"
    assert found["timer_interval_ns"]["bounds"] == "at least 1us"


def test_a_configuration_shows_the_origin_of_each_value():
    context = Context(mtu_length=8192, random_loss=RandomLoss(0.5, 7, 2), receiver_group_tag=9)
    text = settings_table.configuration(
        context, lambda variable: "-D" if variable == "AERON_MTU_LENGTH" else "default"
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "windtunnel-driver {"
    assert lines[-1] == "}"
    assert len(lines) == len(SETTINGS) + 2
    assert "mtu_length=8k (-D)" in lines
    assert "random_loss=rate=0.5|seed=7|recv-msg-mask=0x2 (default)" in lines
    assert "receiver_group_tag=9 (default)" in lines
    assert "untethered_linger_timeout_ns=-1 (default)" in lines
