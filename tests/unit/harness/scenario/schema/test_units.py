"""Quantities: each unit, invalid values, and formatting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.harness.scenario.schema.units import (
    format_bytes,
    format_duration,
    format_share,
    parse_bytes,
    parse_duration,
    parse_share,
    parse_signed_bytes,
    parse_signed_duration,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bytes, "1B", 1),
        (parse_bytes, "64MiB", 64 << 20),
        (parse_bytes, "1.5KiB", 1536),
        (parse_bytes, " 2 GiB ", 2 << 30),
        (parse_duration, "5ms", 5_000_000),
        (parse_duration, "0.25us", 250),
        (parse_duration, "2min", 120 * 10**9),
        (parse_share, "2%", 20_000_000),
        (parse_share, "0.0000001%", 1),
        (parse_share, "100%", 10**9),
    ],
)
def test_reads_quantities(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, 64),
        (parse_bytes, "64"),
        (parse_bytes, "64MB"),
        (parse_bytes, "1e3B"),
        (parse_bytes, "-1B"),
        (parse_bytes, "0.5B"),
        (parse_bytes, None),
        (parse_duration, "5"),
        (parse_duration, "5 m"),
        (parse_duration, "0.1ns"),
        (parse_share, 2),
        (parse_share, "2"),
        (parse_share, "0%"),
        (parse_share, "100.1%"),
        (parse_share, "0.00000001%"),
        (parse_share, True),
    ],
)
def test_refuses_invalid_quantities(parse, text):
    with pytest.raises(ValueError, match="expected"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"), [("-5s", -5 * 10**9), ("- 5 s", -5 * 10**9), ("1.5ms", 1_500_000)]
)
def test_reads_signed_quantities(text, value):
    assert parse_signed_duration(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_duration, "-5s", "such as 5ms, found '-5s': it must not be negative"),
        (parse_duration, "+5s", "such as 5ms, found '+5s': write it without the plus sign"),
        (parse_signed_duration, "+5s", "5ms or -5ms, found '+5s': write it without the plus sign"),
        (parse_signed_duration, "-5", "such as 5ms or -5ms, found '-5'"),
        (parse_signed_duration, -5, "such as 5ms or -5ms, found -5"),
        (parse_signed_duration, "--5s", "such as 5ms or -5ms, found '--5s'"),
        (parse_signed_duration, "-11000min", "of at least -10080min, found '-11000min'"),
        (parse_signed_duration, "11000min", "of at most 10080min, found '11000min'"),
        (parse_signed_bytes, "+64B", "such as 64MiB or -64MiB, found '+64B': write it without the"),
        (parse_signed_bytes, "-0.5B", "a whole number of the smallest unit, found '-0.5B'"),
    ],
)
def test_a_wrong_sign_is_named(parse, text, message):
    with pytest.raises(ValueError, match="expected") as raised:
        parse(text)
    assert message in str(raised.value)


@given(st.integers(1, 10**12))
def test_formatted_quantities_are_read_back(value):
    assert parse_bytes(format_bytes(value)) == value
    assert parse_duration(format_duration(value)) == value
    share = 1 + value % 10**9
    assert parse_share(format_share(share)) == share
