"""A finding: the inputs that preceded a violation, as a file that can be replayed.

    {"schema": "windtunnel-fuzz/1", "against": "driver", "driver": "ours", "seed": 7, "epoch": 3,
     "mode": "SHARED", "text": "...", "inputs": [["datagram", 5, "4000..."], ...]}

A finding can come from another person, so its size is limited and its contents are checked. It
contains only bytes to send: no program or path in it is used.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.document_values import ValueTypeError, parse
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.regular_file import read_text, replace_file

SCHEMA = "windtunnel-fuzz/1"
INPUTS_MAX = 40_000
"""Maximum number of inputs in a finding. Earlier inputs are omitted."""


class Violation(Exception):
    """The attacked program has failed a check. The message describes the failure."""


@dataclass(frozen=True)
class Input:
    """One input of an attack: its kind, its target and its bytes."""

    kind: str
    target: int
    content: bytes


@dataclass(frozen=True)
class Finding:
    """A violation, with the inputs that led to it and the settings to replay them."""

    against: str
    driver: str
    mode: str
    seed: int
    epoch: int
    text: str
    inputs: list[list[str | int]] = field(default_factory=list)
    schema: str = SCHEMA

    def input_list(self) -> list[Input]:
        """Return the inputs in decoded form. Raises DocumentError if an input is malformed."""
        found = []
        for index, item in enumerate(self.inputs):
            try:
                kind, target, text = item
                found.append(Input(str(kind), int(target), bytes.fromhex(str(text))))
            except ValueError as error:
                raise DocumentError(
                    f"inputs[{index}]: expected [kind, target, hexadecimal bytes]: {error}"
                ) from error
        return found

    def write(self, folder: Path, suffix: str = "") -> Path:
        """Write the finding to a file in a folder. Returns the path of the file. The suffix
        distinguishes findings of one epoch.
        """
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.against}-{self.driver}-s{self.seed}-e{self.epoch}{suffix}.json"
        replace_file(path, json.dumps(asdict(self)))
        return path


def packed(inputs: list[Input]) -> list[list[str | int]]:
    """Encode the last INPUTS_MAX inputs of an attack for a finding's JSON document."""
    return [[item.kind, item.target, item.content.hex()] for item in inputs[-INPUTS_MAX:]]


def read(path: Path) -> Finding:
    """Read a finding from a file. Raises DocumentError if the finding is invalid, or
    UnsafeFileError or OSError if the file cannot be read.
    """
    try:
        document = json.loads(read_text(path))
        found = parse(Finding, document)
    except (ValueError, RecursionError, ValueTypeError) as error:
        raise DocumentError(
            f"{path}: expected a finding written by `windtunnel fuzz`: {error}"
        ) from error
    if found.schema != SCHEMA or found.against not in ("driver", "archive", "tools"):
        raise DocumentError(
            f"{path}: expected schema {SCHEMA} and target driver, archive or tools; found schema "
            f"{found.schema!r} and target {found.against!r}"
        )
    return found
