"""The settings laid out for people and machines: all there are, or those of one driver.

Pure texts; printing is the caller's.
"""

import json
from collections.abc import Callable
from typing import Any

from windtunnel.driver.media_driver.context import SETTINGS, Context

SCHEMA = "windtunnel-driver-settings/1"


def describe() -> str:
    """A paragraph for each setting there is."""
    defaults = Context()
    lines = []
    for name, kind in SETTINGS.items():
        default = kind.write(getattr(defaults, name)) or "not set"
        lines += [
            kind.variable,
            f"    {kind.meaning}",
            f"    default {default}; {kind.bounds()}",
        ]
    return "\n".join(lines) + "\n"


def describe_json() -> str:
    """The same for machines."""
    defaults = Context()
    rows = [
        {
            "variable": kind.variable,
            "name": name,
            "default": kind.write(getattr(defaults, name)),
            "bounds": kind.bounds(),
            "meaning": kind.meaning,
        }
        for name, kind in SETTINGS.items()
    ]
    return json.dumps({"schema": SCHEMA, "settings": rows}, indent=2) + "\n"


def configuration(context: Context, origin_of: Callable[[str], str]) -> str:
    """Every setting of one driver, with who gave it."""
    lines = [f"    {name}={_text(context, name)}" for name in SETTINGS]
    width = max(map(len, lines))
    told = (
        f"{line:<{min(width, 72)}}  ({origin_of(kind.variable)})"
        for line, kind in zip(lines, SETTINGS.values(), strict=True)
    )
    return "\n".join(["windtunnel-driver {", *told, "}"]) + "\n"


def _text(context: Context, name: str) -> Any:
    return SETTINGS[name].write(getattr(context, name))
