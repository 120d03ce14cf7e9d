"""Reasons why a generated mutant survives although it has an effect: the effect violates no
requirement.

    file:
      "line before -> line after": reason         several lines if one is not unique in the file

The exam shows the reason. The mutant still counts as one that was not killed, so that a reason
never raises the score.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("reasons.yaml")


@cache
def reasons() -> Mapping[str, Mapping[str, str]]:
    """Return the reasons by the mutated file and by its edited lines."""
    found = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {file: dict(edits) for file, edits in found.items()}
