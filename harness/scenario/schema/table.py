"""What every table of a scenario file is made of: its strictness, and quantities with their units.

A quantity is a text with a unit, checked and turned into an exact integer when it is read; the
JSON Schema for editors carries its pattern. Refuses to know any table.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from windtunnel.harness.scenario.schema.units import (
    parse_byte_rate,
    parse_bytes,
    parse_duration,
    parse_probability,
    parse_rate,
    parse_share,
)

NUMBER = r"^\d+(\.\d+)?\s*"
"""The beginning of a quantity's pattern; the units follow."""


def quantity(pattern: str, example: str) -> WithJsonSchema:
    """How a quantity looks to an editor."""
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


def _signed_bytes(value: object) -> int:
    if isinstance(value, str) and value.startswith("-"):
        return -parse_bytes(value[1:])
    return parse_bytes(value)


def one_or_many(value: object) -> Any:
    """A list of one where a list was meant."""
    return value if isinstance(value, list) else [value]


Bytes = Annotated[int, BeforeValidator(parse_bytes), quantity(NUMBER + "(B|KiB|MiB|GiB)$", "64MiB")]
SignedBytes = Annotated[
    int,
    BeforeValidator(_signed_bytes),
    quantity(r"^-?\d+(\.\d+)?\s*(B|KiB|MiB|GiB)$", "-64B"),
]
Duration = Annotated[
    int, BeforeValidator(parse_duration), quantity(NUMBER + "(ns|us|ms|s|min)$", "5ms")
]
Rate = Annotated[
    int, BeforeValidator(parse_rate), quantity(NUMBER + "(bit|kbit|Mbit|Gbit)/s$", "200Mbit/s")
]
ByteRate = Annotated[
    int, BeforeValidator(parse_byte_rate), quantity(NUMBER + "(B|KiB|MiB|GiB)/s$", "20MiB/s")
]
Share = Annotated[int, BeforeValidator(parse_share), quantity(NUMBER + "%$", "2%")]
Probability = Annotated[int, BeforeValidator(parse_probability), quantity(NUMBER + "%$", "0%")]
"""A share that may be nothing at all."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
OptionalName = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9-]*)?$", max_length=40)]


class Table(BaseModel):
    """A table of a scenario file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
