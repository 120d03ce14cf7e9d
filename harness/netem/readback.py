"""Parses an interface's netem settings and compares them with the requested settings.

    tc -j -s qdisc show dev IF  --parse-->  Applied: settings and packet counts

Shares are printed as six decimal digits of a 32-bit fraction, so they are compared with a
tolerance.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from windtunnel.harness.netem.render import limit
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
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
    """The settings and packet counts that the kernel reports for a netem qdisc."""

    options: dict[str, Any]
    packets: int
    """Number of transmitted packets."""
    dropped: int
    """Number of packets dropped on purpose or because the queue was full."""
    waiting: int
    requeued: int


def parse(text: str) -> Applied:
    """Parse an interface's root qdisc. Raises ValueError unless it is a netem qdisc."""
    try:
        found = [each for each in json.loads(text) if each.get("root")]
        kinds = [each["kind"] for each in found]
        if kinds != ["netem"]:
            raise ValueError(
                f"expected netem as the only root qdisc, found {', '.join(kinds) or 'none'}"
            )
        (root,) = found
        return Applied(
            options=dict(root["options"]),
            packets=int(root["packets"]),
            dropped=int(root["drops"]),
            waiting=int(root["qlen"]),
            requeued=int(root["requeues"]),
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"cannot parse the output of tc: {error!r}: {text[:200]}") from error


def differences(requested: ImpairmentCase, applied: Applied) -> list[str]:
    """Describe the differences between the requested netem settings and those that the kernel
    reports.
    """
    expected = _flat(_expected(requested))
    found = _flat({key: value for key, value in applied.options.items() if key != "ecn"})
    texts = []
    for key in sorted(expected.keys() | found.keys()):
        left, right = expected.get(key, 0.0), found.get(key, 0.0)
        if not math.isclose(left, right, rel_tol=RELATIVE_ERROR, abs_tol=ABSOLUTE_ERROR):
            texts.append(f"{key}: expected {left:g}, found {right:g}")
    return texts


def _expected(requested: ImpairmentCase) -> dict[str, Any]:
    """Convert an impairment to the keys and units of `tc -j`: seconds, bytes per second, and
    fractions of 1.
    """
    options: dict[str, Any] = {"limit": limit(requested), "gap": requested.reorder_gap}
    if requested.loss is not None:
        key, names = _LOSS_KEYS[requested.loss.model]
        shares = (share / BILLION for share in requested.loss.shares_ppb)
        options[key] = dict(zip(names, shares, strict=True))
    options["delay"] = {"delay": requested.delay_ns / 1e9, "jitter": requested.jitter_ns / 1e9}
    options["rate"] = {"rate": requested.rate_bits_per_s // 8}
    options["duplicate"] = {"duplicate": requested.duplicate_ppb / BILLION}
    options["corrupt"] = {"corrupt": requested.corrupt_ppb / BILLION}
    options["reorder"] = {"reorder": requested.reorder_ppb / BILLION}
    return options


def _flat(options: dict[str, Any]) -> dict[str, float]:
    """Flatten nested `tc` options to a dict whose keys are paths such as `delay.jitter`.

    Callers treat missing options as 0.
    """
    flat = {}
    for key, value in options.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{name}": float(each) for name, each in value.items()})
        else:
            flat[key] = float(value)
    return flat
