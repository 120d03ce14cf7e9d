"""What the kernel says about an interface's queueing, and whether it is what was asked for.

    tc -j -s qdisc show dev IF  --parse-->  Applied: what is set, and what has passed so far

Shares come back as six decimal digits of a 32-bit fraction, so numbers agree within that.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.netem.render import limit
from windtunnel.harness.scenario.resolved.impairment_case import WeatherCase
from windtunnel.harness.scenario.schema.units import BILLION

_LOSS_KEYS = {
    "iid": ("loss-random", ("loss",)),
    "gilbert-elliott": ("loss-gemodel", ("p", "r", "1-h", "1-k")),
    "four-state": ("loss-state", ("p13", "p31", "p32", "p23", "p14")),
}
RELATIVE_ERROR = 1e-5
ABSOLUTE_ERROR = 1e-9


@dataclass(frozen=True)
class Applied:
    """A netem qdisc as the kernel tells of it."""

    options: dict[str, Any]
    packets: int
    """That left."""
    dropped: int
    """Lost on purpose, or for want of room."""
    waiting: int
    requeued: int


def parse(text: str) -> Applied:
    """Read the root qdisc of an interface; ValueError unless it is a netem."""
    try:
        found = [each for each in json.loads(text) if each.get("root")]
        kinds = [each["kind"] for each in found]
        if kinds != ["netem"]:
            raise ValueError(f"expected one root qdisc, netem, found {', '.join(kinds) or 'none'}")
        (root,) = found
        return Applied(
            options=dict(root["options"]),
            packets=int(root["packets"]),
            dropped=int(root["drops"]),
            waiting=int(root["qlen"]),
            requeued=int(root["requeues"]),
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"tc's answer cannot be understood: {error!r}: {text[:200]}") from error


def differences(asked: WeatherCase, applied: Applied) -> list[str]:
    """What the kernel holds differently from what was asked for; empty if it took all."""
    wanted = _flat(_wanted(asked))
    found = _flat({key: value for key, value in applied.options.items() if key != "ecn"})
    texts = []
    for key in sorted(wanted.keys() | found.keys()):
        left, right = wanted.get(key, 0.0), found.get(key, 0.0)
        if not math.isclose(left, right, rel_tol=RELATIVE_ERROR, abs_tol=ABSOLUTE_ERROR):
            texts.append(f"{key}: asked for {left:g}, the kernel has {right:g}")
    return texts


def _wanted(asked: WeatherCase) -> dict[str, Any]:
    """The weather in the words of `tc -j`: seconds, bytes per second, shares of one."""
    options: dict[str, Any] = {"limit": limit(asked), "gap": asked.reorder_gap}
    if asked.loss is not None:
        key, names = _LOSS_KEYS[asked.loss.model]
        shares = (share / BILLION for share in asked.loss.shares_ppb)
        options[key] = dict(zip(names, shares, strict=True))
    options["delay"] = {"delay": asked.delay_ns / 1e9, "jitter": asked.jitter_ns / 1e9}
    options["rate"] = {"rate": asked.rate_bits_per_s // 8}
    options["duplicate"] = {"duplicate": asked.duplicate_ppb / BILLION}
    options["corrupt"] = {"corrupt": asked.corrupt_ppb / BILLION}
    options["reorder"] = {"reorder": asked.reorder_ppb / BILLION}
    return options


def _flat(options: dict[str, Any]) -> dict[str, float]:
    """Options by path; one that is zero is as good as one that is not there."""
    flat = {}
    for key, value in options.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{name}": float(each) for name, each in value.items()})
        else:
            flat[key] = float(value)
    return flat
