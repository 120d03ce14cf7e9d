"""Formats all known settings, or the settings of one driver, as text or JSON for printing."""

import json
from collections.abc import Callable
from typing import Any

from windtunnel.driver.media_driver.context import SETTINGS, Context

SCHEMA = "windtunnel-driver-settings/1"


def describe() -> str:
    """Return a description of all known settings, one paragraph per setting."""
    defaults = Context()
    lines = []
    for name, kind in SETTINGS.items():
        default = kind.write(getattr(defaults, name)) or "not set"
        lines += [
            kind.variable,
            f"    {kind.description}",
            f"    default {default}; {kind.bounds()}",
        ]
    return "\n".join(lines) + "\n"


def describe_json() -> str:
    """Return all known settings as a JSON document."""
    defaults = Context()
    rows = [
        {
            "variable": kind.variable,
            "name": name,
            "default": kind.write(getattr(defaults, name)),
            "bounds": kind.bounds(),
            "meaning": kind.description,
        }
        for name, kind in SETTINGS.items()
    ]
    return json.dumps({"schema": SCHEMA, "settings": rows}, indent=2) + "\n"


def configuration(context: Context, origin_of: Callable[[str], str]) -> str:
    """Return a driver's settings as text: the value and the source of each setting."""
    lines = [f"    {name}={_text(context, name)}" for name in SETTINGS]
    width = max(map(len, lines))
    rows = (
        f"{line:<{min(width, 72)}}  ({origin_of(kind.variable)})"
        for line, kind in zip(lines, SETTINGS.values(), strict=True)
    )
    return "\n".join(["windtunnel-driver {", *rows, "}"]) + "\n"


def _text(context: Context, name: str) -> Any:
    return SETTINGS[name].write(getattr(context, name))
