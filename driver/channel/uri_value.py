"""Parses the values of URI parameters and settings: sizes, durations, booleans and integers.

    size       64k   1M   2g   4096            bytes, k = 1024, m = 1024 k, g = 1024 m
    duration   200   10us  5ms  5s             nanoseconds without a suffix
    boolean    true  false
    integer    -7    0x1F  017                 C notation: hexadecimal and octal prefixes

Error messages contain the key, the value and the violated limit. Where Aeron's drivers differ, the
syntax is that of the C driver, except that trailing characters are an error.
"""

import re

from windtunnel.driver.base.arith import I32_MAX, I32_MIN, I64_MAX, I64_MIN
from windtunnel.driver.base.errors import ConfigurationError

_SIZE = re.compile(r"([0-9]{1,4000})([kmg]?)", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"([0-9]{1,4000})(ns|us|ms|s)?", re.ASCII | re.IGNORECASE)
# An error message contains the value in decimal, and Python formats at most 4300 digits. A value of
# 3500 hexadecimal digits stays below that limit.
_INTEGER = re.compile(
    r"([+-]?)(0x[0-9a-f]{1,3500}|0[0-7]{0,4000}|[1-9][0-9]{0,4000})", re.ASCII | re.IGNORECASE
)
_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def check_range(key: str, text: str, value: int, minimum: int, maximum: int) -> int:
    """Return `value` if it is in range. Otherwise raise ConfigurationError with `text` in the
    message.
    """
    if value < minimum:
        raise ConfigurationError(f"{key}={text}: expected at least {minimum}, found {value}")
    if value > maximum:
        raise ConfigurationError(f"{key}={text}: expected at most {maximum}, found {value}")
    return value


def parse_size(key: str, text: str, minimum: int = 0, maximum: int = I64_MAX) -> int:
    """Parse a size in bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{key}={text}: expected a size such as 65536, 64k, 1m or 1g")
    value = int(match[1]) * _SIZE_UNITS[match[2].lower()]
    return check_range(key, text, value, minimum, maximum)


def parse_duration_ns(key: str, text: str, minimum: int = 0, maximum: int = I64_MAX) -> int:
    """Parse a duration and return nanoseconds, limited to the largest int64."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{key}={text}: expected a duration such as 5s, 20ms, 10us or 7ns")
    value = int(match[1]) * _DURATION_UNITS_NS[(match[2] or "ns").lower()]
    return check_range(key, text, min(value, I64_MAX), minimum, maximum)


def parse_bool(key: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise ConfigurationError(f"{key}={text}: expected true or false")
    return text == "true"


def parse_int64(key: str, text: str, minimum: int = I64_MIN, maximum: int = I64_MAX) -> int:
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"{key}={text}: expected an integer")
    digits = match[2].lower()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    value = int(match[1] + digits, base) if base != 16 else int(match[1] + digits[2:], 16)
    return check_range(key, text, value, minimum, maximum)


def parse_int32(key: str, text: str, minimum: int = I32_MIN, maximum: int = I32_MAX) -> int:
    return parse_int64(key, text, minimum, maximum)


def format_size(value: int) -> str:
    """Return a size in its shortest exact form, such as 64k for 65536."""
    for suffix in ("g", "m", "k"):
        if value and value % _SIZE_UNITS[suffix] == 0:
            return f"{value // _SIZE_UNITS[suffix]}{suffix}"
    return str(value)


def format_duration_ns(value_ns: int) -> str:
    """Return a duration in its shortest exact form, such as 5ms for 5000000."""
    for suffix in ("s", "ms", "us"):
        if value_ns and value_ns % _DURATION_UNITS_NS[suffix] == 0:
            return f"{value_ns // _DURATION_UNITS_NS[suffix]}{suffix}"
    return f"{value_ns}ns"
