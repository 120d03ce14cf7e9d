"""The JSON Schema of scenario files, for editors and other tools.

    model --pydantic--> schema of the resolved values --here--> schema of the values as written

It accepts every file that the loader accepts. It rejects unknown and missing keys, wrong types,
missing units, and combinations of keys that a table does not allow. Limits of quantities and rules
that involve several tables cannot be expressed in JSON Schema. Only the loader checks these.
"""

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from windtunnel.harness.scenario.applications.driver_settings import plain_text
from windtunnel.harness.scenario.schema import applies
from windtunnel.harness.scenario.schema.fault import COUNT_MAX
from windtunnel.harness.scenario.schema.loss_model import BURSTS, BURSTS_SCHEMA
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.table import (
    ARGUMENT_ITEMS_MAX,
    ARGUMENT_LENGTH_MAX,
    ARGUMENTS_MAX,
    one_or_many,
    quantity,
)
from windtunnel.harness.scenario.schema.units import MESSAGES_PER_SECOND
from windtunnel.harness.scenario.shorthand import ALL, MESSAGES_MAX
from windtunnel.harness.scenario.sweep import KEYS_MAX, VALUES_MAX

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]


def _keys(*names: str) -> Schema:
    return {"required": list(names)}


ONE_KEY: Schema = {"minProperties": 1, "maxProperties": 1}
NOT_EMPTY: Schema = {"minProperties": 1}
UNTIL: Schema = {"until": ["at_most"], "at_most": ["until"]}
QUANTITY = ("type", "pattern", "examples")
"""The keys of a quantity's schema."""
MESSAGE_COUNT: Schema = {
    **_keys("messages", "message"),
    "properties": {"message": {"anyOf": [{"type": "string"}, _keys("from", "to")]}},
}
"""Messages of one length: a number of messages determines the number of bytes."""
TABLES: dict[str, Schema] = {
    "Act": ONE_KEY,
    "Until": ONE_KEY,
    "EventMoment": ONE_KEY,
    "EventAct": ONE_KEY,
    "EventTarget": {"oneOf": [_keys("host"), _keys("link")]},
    "EventImpairments": {"minProperties": 2},
    "Pace": NOT_EMPTY,
    "Impairments": NOT_EMPTY,
    "Hold": {"oneOf": [_keys("for"), _keys("until")], "dependentRequired": UNTIL},
    "Duplicate": {"not": _keys("for", "until"), "dependentRequired": UNTIL},
    "ForgedPlace": {"not": _keys("advance", "term_end")},
    "Forged": {
        "if": {"properties": {"holds": {"const": "frames"}}, **_keys("holds")},
        "then": {"properties": {"type": {"const": "DATA"}}, **_keys("payload")},
    },
    "PositionFilter": {
        "oneOf": [
            {"anyOf": [_keys("length"), _keys("every"), _keys("from")]},
            _keys("at"),
            _keys("ranges"),
        ],
        "dependentSchemas": {"from": {"anyOf": [_keys("length"), _keys("every")]}},
    },
    "When": {
        "if": {"properties": {"every": {"pattern": "[1-9]"}}, **_keys("every")},
        "then": _keys("for"),
    },
    "Network": {
        "oneOf": [_keys("link"), {"properties": {"links": {"minItems": 1}}, **_keys("links")}]
    },
    "Traffic": {"anyOf": [_keys("content"), _keys("replays")]},
}
"""Rules for the combinations of keys that each table allows, by table name."""
VARIANTS: Schema = {
    "extends": {
        "type": "string",
        "examples": ["other.yaml"],
        "description": "Another scenario, which this one completes: a file in the same folder or "
        "below it, or a name in `windtunnel list`. Tables are merged key by key, lists of tables "
        "by their ids.",
    },
    "sweep": {
        "type": "object",
        "minProperties": 1,
        "maxProperties": KEYS_MAX,
        "additionalProperties": {
            "type": "array",
            "items": {"type": ["string", "number", "boolean"]},
            "minItems": 1,
            "maxItems": VALUES_MAX,
        },
        "description": "Values of which each combination is a scenario of its own, by name: an "
        "impairment of all links such as `loss: [1%, 5%]`, or a path such as "
        "`applications.feed.env.RATE: [10, 100]`.",
    },
}
"""Keys that the loader evaluates before it validates a scenario."""


def json_schema() -> Schema:
    """Return the JSON Schema of scenario files."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_Generator)
    tables = schema["$defs"]
    for name, rules in TABLES.items():
        tables[name] |= rules
    _allow(schema["properties"]["observe"], {"const": ALL})
    for name, key in (("What", "order"), ("Fault", "attempt")):
        number = {"type": "integer", "minimum": 1, "exclusiveMaximum": COUNT_MAX}
        _allow(tables[name]["properties"][key], number)
    share = tables["Duplicate"]["properties"]["share"]
    _allow(tables["Act"]["properties"]["duplicate"], {"oneOf": share["oneOf"]})
    _allow_short_forms(tables)
    schema["properties"] |= VARIANTS
    streams = _keys("traffic", "expect")
    schema["anyOf"] = [streams, {"not": _keys("traffic"), **_keys("applications")}]
    # Only a replay may omit the content, so another stream must have it.
    schema["properties"]["traffic"]["contains"] = _keys("content")
    schema["properties"]["expect"]["items"] = _check(tables.pop("Check"))
    _clean(schema)
    tables[BURSTS] = BURSTS_SCHEMA
    del schema["$defs"]
    return {
        "$schema": DIALECT,
        "$defs": dict(sorted(tables.items())),
        "if": _keys("extends"),
        "then": _extending(schema["properties"]),
        "else": schema,
    }


def _extending(properties: Schema) -> Schema:
    """Return the schema of a file that extends another one. Each of its tables may lack keys that
    the other file has, so only their names are described.
    """
    described = {
        name: {key: text for key, text in each.items() if key == "description"}
        for name, each in properties.items()
    }
    whole = {name: properties[name] for name in ("name", "extends", "sweep")}
    return {
        "type": "object",
        "properties": {**described, **whole},
        "additionalProperties": False,
        "required": ["name"],
    }


class _Generator(GenerateJsonSchema):
    """Generates the JSON Schema of a scenario file from the types of its values."""

    def function_before_schema(
        self, schema: core_schema.BeforeValidatorFunctionSchema
    ) -> JsonSchemaValue:
        """Return the schema of a list, or of a text. A file can contain a single item instead of a
        list with one item, and a number or a truth value instead of a text.
        """
        found = super().function_before_schema(schema)
        if schema["function"]["function"] is plain_text:
            return found | {"type": ["string", "number", "boolean"]}
        if schema["function"]["function"] is not one_or_many:
            return found
        return {"anyOf": [found["items"], found]}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """Return the schema of an optional value. A file omits an absent value and never contains
        null.
        """
        return self.generate_inner(schema["schema"])


def _allow(schema: Schema, other: Schema) -> None:
    """Extend the schema of a value, so that the value can also be written in a second form."""
    description = schema.pop("description")
    forms = [other, dict(schema)]
    schema.clear()
    schema |= {"anyOf": forms, "description": description}


def _allow_short_forms(tables: dict[str, Schema]) -> None:
    """Add the short forms that `shorthand` replaces before the tables are validated."""
    content, pace, impairments = (tables[name] for name in ("Content", "Pace", "Impairments"))
    rates = [pace["properties"]["rate"], _text_of(MESSAGES_PER_SECOND, "20000 msg/s")]
    rate = {"anyOf": [{key: each[key] for key in QUANTITY} for each in rates]}
    length = tables["MessageLengths"]["properties"]["from"]
    length = {key: length[key] for key in QUANTITY}
    _allow(content["properties"]["message"], length)
    for each in (impairments, tables["EventImpairments"]):
        _allow(each["properties"]["delay"], tables["Delay"]["properties"]["mean"])
    pace["properties"]["rate"] = rate | {"description": rates[0]["description"]}
    content["properties"] |= {
        "messages": {
            "type": "integer",
            "minimum": 1,
            "maximum": MESSAGES_MAX,
            "description": "Number of messages, in place of `bytes`. It needs one message length.",
        },
        "rate": rate | {"description": "Short form of `pace` with only a rate."},
    }
    content["required"].remove("bytes")
    content["oneOf"] = [_keys("bytes"), MESSAGE_COUNT]
    content["not"] = _keys("rate", "pace")


def _text_of(units: Iterable[str], example: str) -> Schema:
    """Return the schema of a quantity with one of these units."""
    return quantity("|".join(units), example).json_schema or {}


def _check(resolved: Schema) -> Schema:
    """Return the schema of an item in `expect`: a check's name, or a table with its name and
    arguments.
    """
    name, arguments = (resolved["properties"][key] for key in ("name", "arguments"))
    entry = {"type": "string", "pattern": applies.PATTERN, "maxLength": applies.ENTRY_LENGTH_MAX}
    drivers = {"type": "array", "items": entry, "minItems": 1, "maxItems": applies.ENTRIES_MAX}
    plain = [{"type": "string", "maxLength": ARGUMENT_LENGTH_MAX}, {"type": "integer"}]
    several = {"type": "array", "items": {"anyOf": plain}, "maxItems": ARGUMENT_ITEMS_MAX}
    arguments["properties"] = {applies.KEY: drivers}
    arguments["additionalProperties"] = {"anyOf": [*plain, several]}
    arguments["maxProperties"] = ARGUMENTS_MAX
    table = {"type": "object", "additionalProperties": arguments, "propertyNames": name}
    return {"oneOf": [name, table | ONE_KEY]}


def _clean(value: Any, *, is_schema: bool = True) -> None:
    """Remove defaults and numeric limits, because these apply only to resolved values. Replace the
    schema of bursts, which occurs in each loss model, with a reference.
    """
    if isinstance(value, list):
        for index, each in enumerate(value):
            _clean(each)
            if each == BURSTS_SCHEMA:
                value[index] = {"$ref": f"#/$defs/{BURSTS}"}
    elif isinstance(value, dict):
        for key in ("default", "gt", "ge", "lt", "le") if is_schema else ():
            value.pop(key, None)
        for key, each in value.items():
            _clean(each, is_schema=not is_schema or key not in ("properties", "$defs"))
