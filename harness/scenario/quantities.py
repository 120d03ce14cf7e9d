"""Types of the fields that hold a quantity: its reader, and its shape in the JSON Schema."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from harness.scenario.units import parse_bytes, parse_duration, parse_share

NUMBER = r"^\d+(\.\d+)?\s*"


def quantity(pattern: str, example: str) -> WithJsonSchema:
    """The schema of a text such as the example."""
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
Share = Annotated[int, BeforeValidator(parse_share), quantity(NUMBER + "%$", "2%")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]


class Table(BaseModel):
    """A table of a scenario file."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
