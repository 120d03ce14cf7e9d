"""A finding: the inputs that came before a violation, as a file that can be replayed.

    {"schema": "windtunnel-fuzz/1", "against": "driver", "driver": "ours", "seed": 7, "epoch": 3,
     "mode": "SHARED", "text": "...", "inputs": [["datagram", 5, "4000..."], ...]}

A file comes from other people: it is limited in size and checked when it is read, and contains
only bytes to send. No program and no path in it is used.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.document_values import ValueTypeError, parse
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.regular_file import read_text, replace_file

SCHEMA = "windtunnel-fuzz/1"
INPUTS_MAX = 40_000
"""Inputs that a finding keeps, the last ones."""


class Violation(Exception):
    """A promise that the attacked program has broken."""


@dataclass(frozen=True)
class Input:
    """One input: what it is, which target it went to, and its bytes."""

    kind: str
    target: int
    content: bytes


@dataclass(frozen=True)
class Finding:
    """What was violated, and everything that is needed to try it again."""

    against: str
    driver: str
    mode: str
    seed: int
    epoch: int
    text: str
    inputs: list[list[str | int]] = field(default_factory=list)
    schema: str = SCHEMA

    def input_list(self) -> list[Input]:
        """Return the inputs. Raises DocumentError if one is malformed."""
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

    def write(self, folder: Path) -> Path:
        """Write the finding into a folder. Returns the path of the file."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.against}-{self.driver}-s{self.seed}-e{self.epoch}.json"
        replace_file(path, json.dumps(asdict(self)))
        return path


def packed(inputs: list[Input]) -> list[list[str | int]]:
    """Return the last inputs in the form of the document."""
    return [[item.kind, item.target, item.content.hex()] for item in inputs[-INPUTS_MAX:]]


def read(path: Path) -> Finding:
    """Read a finding. Raises DocumentError, UnsafeFileError and OSError."""
    try:
        document = json.loads(read_text(path))
        found = parse(Finding, document)
    except (ValueError, RecursionError, ValueTypeError) as error:
        raise DocumentError(f"{path}: expected a finding of `windtunnel fuzz`: {error}") from error
    if found.schema != SCHEMA or found.against not in ("driver", "archive", "tools"):
        raise DocumentError(
            f"{path}: expected a document of schema {SCHEMA}, found {found.schema!r} "
            f"against {found.against!r}"
        )
    return found
