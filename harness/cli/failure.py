"""Turn what the rooms below raise into one line and an exit code.

ScenarioError, wrong values    64    the user's file or command is wrong; nothing was started
LabError                        3    this machine refuses
DocumentError                   2    a run folder cannot be understood
"""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from windtunnel.harness.cli import exit_code


class Failure(click.ClickException):
    """A line on stderr and an exit code."""

    exit_code: int  # type: ignore[misc]  # click declares it for the class; ours differs by failure

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


@contextmanager
def one_line() -> Iterator[None]:
    """Errors of the rooms below become Failures; anything else is a defect and passes."""
    from windtunnel.harness.artifact.documents import DocumentError
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.subjects.peers import PeerError
    from windtunnel.harness.scenario.loader import ScenarioError

    try:
        yield
    except (PeerError, ScenarioError) as error:
        raise Failure(str(error), exit_code.USAGE) from error
    except LabError as error:
        raise Failure(str(error), exit_code.HARNESS) from error
    except DocumentError as error:
        raise Failure(str(error), exit_code.INCONCLUSIVE) from error
