"""The exception for evidence that a run lacks."""

from typing import TypeVar

from windtunnel.harness.verdict.core.finding import Missing

_VALUE = TypeVar("_VALUE")


class EvidenceMissing(Exception):
    """Raised if a run lacks the evidence that a check needs, such as a capture. The check is
    then INCONCLUSIVE, or HARNESS if a file is damaged.
    """

    def __init__(self, text: str, damaged: bool = False) -> None:
        super().__init__(text)
        self.damaged = damaged


def present(value: _VALUE | Missing) -> _VALUE:
    """Return evidence, or raise EvidenceMissing if it is missing."""
    if isinstance(value, Missing):
        raise EvidenceMissing(f"{value.source}: {value.reason}", value.damaged)
    return value
