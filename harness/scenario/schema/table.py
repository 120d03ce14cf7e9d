"""The base class of all tables in a scenario file, and types for quantities with units.

A quantity is a string with a unit, which is converted to an exact integer when it is read. The JSON
Schema for editors contains the pattern of each quantity.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.units import (
    BITS_PER_SECOND,
    BYTES,
    BYTES_PER_SECOND,
    DIGITS_MAX,
    NANOSECONDS,
    parse_byte_rate,
    parse_bytes,
    parse_duration,
    parse_probability,
    parse_rate,
    parse_share,
    parse_signed_bytes,
    parse_signed_duration,
    shown,
)

NOT_ZERO = "(?=.*[1-9])"
"""Prefix of the regular expression for a quantity that must not be zero."""


def quantity(units: str, example: str, *, prefix: str = "", word: str = "") -> WithJsonSchema:
    """Return the JSON Schema of a quantity with one of these units. If `word` is given, this string
    is also valid.
    """
    digits = f"[0-9]{{1,{DIGITS_MAX}}}"
    pattern = rf"^{prefix}\s*{digits}(\.{digits})?\s*({units})\s*$" + (f"|^{word}$" if word else "")
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


def one_or_many(value: object) -> Any:
    """Return a list unchanged, or a single value as a list with one item."""
    return value if isinstance(value, list) else [value]


SIZE_UNITS = "|".join(BYTES)
Bytes = Annotated[int, BeforeValidator(parse_bytes), quantity(SIZE_UNITS, "64MiB")]
SignedBytes = Annotated[
    int, BeforeValidator(parse_signed_bytes), quantity(SIZE_UNITS, "-64B", prefix="-?")
]
TIME_UNITS = "|".join(NANOSECONDS)
Duration = Annotated[int, BeforeValidator(parse_duration), quantity(TIME_UNITS, "5ms")]
SignedDuration = Annotated[
    int, BeforeValidator(parse_signed_duration), quantity(TIME_UNITS, "-5s", prefix="-?")
]
Rate = Annotated[int, BeforeValidator(parse_rate), quantity("|".join(BITS_PER_SECOND), "200Mbit/s")]
ByteRate = Annotated[
    int, BeforeValidator(parse_byte_rate), quantity("|".join(BYTES_PER_SECOND), "20MiB/s")
]
CHANNEL_LENGTH_MAX = 2048
ChannelText = Annotated[str, Field(max_length=CHANNEL_LENGTH_MAX)]
"""A channel as written in the file. `channel` parses it."""
Share = Annotated[int, BeforeValidator(parse_share), quantity("%", "2%", prefix=NOT_ZERO)]
Probability = Annotated[int, BeforeValidator(parse_probability), quantity("%", "0%")]
"""A share that may be 0%."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
ARGUMENTS_MAX, ARGUMENT_ITEMS_MAX, ARGUMENT_LENGTH_MAX = 16, 64, 200


def _arguments(value: object) -> object:
    """Validate the number and types of a check's arguments, and the format of the argument
    `applies`.
    """
    if not isinstance(value, dict):
        return value  # The field's type rejects it.
    if len(value) > ARGUMENTS_MAX:
        raise ValueError(f"expected at most {ARGUMENTS_MAX} arguments, found {len(value)}")
    for name, argument in value.items():
        each = argument if isinstance(argument, list) else [argument]
        if len(each) > ARGUMENT_ITEMS_MAX or not all(map(_is_argument, each)):
            text = f"a string, an integer, or a list of at most {ARGUMENT_ITEMS_MAX} of these"
            raise ValueError(f"argument {shown(str(name))}: expected {text}")
    if applies.KEY in value:
        applies.check_applies(value[applies.KEY])
    return value


def _is_argument(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= ARGUMENT_LENGTH_MAX
    return isinstance(value, int) and not isinstance(value, bool)


Arguments = Annotated[dict[str, Any], BeforeValidator(_arguments)]
"""The arguments of a check: names or lists of names, such as streams, hosts or drivers."""
OptionalName = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9-]*)?$", max_length=40)]


class Table(BaseModel):
    """The base class of a table in a scenario file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
