"""Sizes, durations, booleans and integers: each bound with the nearest invalid value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.arith import I32_MAX, I32_MIN, I64_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

NOT_NEGATIVE = st.integers(0, I64_MAX)


def attempt(parse, key, text):
    """The value, or the text of the error."""
    try:
        return parse(key, text)
    except ConfigurationError as error:
        return str(error)


@given(NOT_NEGATIVE)
def test_parsing_inverts_formatting(value):
    assert uri_value.parse_size("k", uri_value.format_size(value)) == value
    assert uri_value.parse_duration_ns("k", uri_value.format_duration_ns(value)) == value


@given(st.integers(uri_value.I64_MIN, I64_MAX))
def test_integers_read_back_in_every_notation(value):
    for text in (str(value), hex(value), f"{'-' if value < 0 else ''}0{abs(value):o}"):
        assert uri_value.parse_int64("k", text) == value


@given(st.text(max_size=12))
def test_any_text_is_a_value_or_an_error_that_names_the_key(text):
    parsers = (uri_value.parse_size, uri_value.parse_duration_ns, uri_value.parse_int64)
    for parse in (*parsers, uri_value.parse_bool):
        outcome = attempt(parse, "some-key", text)
        assert isinstance(outcome, int) or outcome.startswith(f"some-key={text}: expected")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("1408", 1408), ("64k", 65536), ("1M", 1 << 20), ("2g", 2 << 30), ("007", 7)],
)
def test_size(text, value):
    assert uri_value.parse_size("k", text) == value


@pytest.mark.parametrize("text", ["", "k", "-1", "1kb", "1 k", "1.5k", "0x10", "\u0661", "1\n"])
def test_no_size(text):
    with pytest.raises(ConfigurationError, match="expected a size such as"):
        uri_value.parse_size("mtu", text)


@pytest.mark.parametrize(
    ("text", "value_ns"),
    [("7", 7), ("7ns", 7), ("10US", 10_000), ("5ms", 5_000_000), ("2s", 2_000_000_000)],
)
def test_duration(text, value_ns):
    assert uri_value.parse_duration_ns("k", text) == value_ns


@pytest.mark.parametrize("text", ["", "s", "5m", "1h", "-1s", "1.5s", "5 s"])
def test_no_duration(text):
    with pytest.raises(ConfigurationError, match="expected a duration such as"):
        uri_value.parse_duration_ns("linger", text)


def test_a_very_long_duration_is_limited():
    assert uri_value.parse_duration_ns("k", "9223372036s") == 9_223_372_036_000_000_000
    assert uri_value.parse_duration_ns("k", "9223372037s") == I64_MAX
    assert uri_value.parse_duration_ns("k", "9" * 4000) == I64_MAX


@pytest.mark.parametrize("text", ["9" * 4001, "1" * 9000])
def test_a_number_of_absurd_length_is_an_error(text):
    for parse in (uri_value.parse_size, uri_value.parse_duration_ns, uri_value.parse_int64):
        with pytest.raises(ConfigurationError):
            parse("k", text)


@pytest.mark.parametrize("digits", [17, 3500, 3501, 3572, 3600, 4000])
def test_a_long_hexadecimal_number_is_an_error_with_a_message(digits):
    for sign in ("", "-"):
        with pytest.raises(ConfigurationError, match=r"^session-id="):
            uri_value.parse_int32("session-id", sign + "0x" + digits * "f")
        with pytest.raises(ConfigurationError, match=r"^session-id="):
            uri_value.parse_int64("session-id", sign + "0x" + digits * "f")


def test_a_size_beyond_63_bits_is_an_error():
    assert uri_value.parse_size("k", str(I64_MAX)) == I64_MAX
    with pytest.raises(ConfigurationError, match=f"expected at most {I64_MAX}"):
        uri_value.parse_size("k", str(I64_MAX + 1))


@pytest.mark.parametrize("text", ["True", "TRUE", "1", "yes", "truely", "", "false "])
def test_a_boolean_is_exactly_true_or_false(text):
    assert uri_value.parse_bool("k", "true") is True
    assert uri_value.parse_bool("k", "false") is False
    with pytest.raises(ConfigurationError, match=f"eos={text}: expected true or false"):
        uri_value.parse_bool("eos", text)


@pytest.mark.parametrize("value", [I32_MIN, -1, 0, I32_MAX])
def test_int32_takes_its_whole_range(value):
    assert uri_value.parse_int32("k", str(value)) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [(I32_MIN - 1, f"at least {I32_MIN}"), (I32_MAX + 1, f"at most {I32_MAX}")],
)
def test_int32_ends_there(value, reason):
    with pytest.raises(ConfigurationError, match=reason):
        uri_value.parse_int32("k", str(value))


@pytest.mark.parametrize("text", ["", "08", "0x", "1e3", "--1", " 1", "1_000", "tag:"])
def test_no_integer(text):
    with pytest.raises(ConfigurationError, match="expected an integer"):
        uri_value.parse_int64("k", text)
