"""The reference page of scenario files, from their JSON Schema."""

import re
from typing import Any

from windtunnel.harness.scenario.json_schema import json_schema

Schema = dict[str, Any]

UNITS = {
    "%": "share",
    "ns": "duration",
    "B/s": "byte rate",
    "bit/s": "bit rate",
    "KiB": "length",
}
"""The names of quantities, by a unit that the pattern of such a quantity contains."""


def page() -> str:
    """Return the page: one section for the file, and one for each table in it."""
    schema = json_schema()
    lines = ["# Scenario files", ""]
    lines += ["All keys of a scenario. The [guide](../../scenarios/README.md) explains their use;"]
    lines += ["`windtunnel schema` prints the JSON Schema, which is in `scenarios/`.", ""]
    lines += ["## File", "", *_table(schema["else"])]
    for name, each in schema["$defs"].items():
        lines += ["", f"## {name}", "", _sentence(each.get("description", "")), ""]
        lines += _table(each)
    return "\n".join(lines) + "\n"


def _table(schema: Schema) -> list[str]:
    required = schema.get("required", ())
    lines = ["| key | value | content |", "| --- | --- | --- |"]
    for name, each in schema.get("properties", {}).items():
        mark = ", required" if name in required else ""
        about = _sentence(each.get("description", ""))
        lines.append(f"| `{name}`{mark} | {_kind(each)} | {about} |")
    return lines


def _kind(schema: Schema) -> str:
    """Return the type of a value as text, with links to the tables that are possible."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kinds = dict.fromkeys(_kind(each) for each in schema[key] if each.get("type") != "null")
            return " or ".join(kinds)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join("text" if each == "string" else str(each) for each in kind)
    if kind == "array":
        return f"list of {_kind(schema['items'])}" if "items" in schema else "list"
    if kind == "object":
        return "table"
    return _text(schema) if kind == "string" else str(kind)


def _text(schema: Schema) -> str:
    pattern = str(schema.get("pattern", ""))
    examples = schema.get("examples", [])
    example = f" such as `{examples[0]}`" if examples else ""
    for unit, name in UNITS.items():
        if re.search(rf"[(|]{re.escape(unit)}[)|]", pattern):
            return name + example
    return "text" + example


def _sentence(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()
