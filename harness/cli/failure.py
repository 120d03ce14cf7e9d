"""Converts lower layers' exceptions to one line on stderr and an exit code.

ScenarioError, PeerError       64    invalid scenario or command line; nothing was started
LabError                        3    this machine cannot provide what the run needs
DocumentError                   2    a run folder cannot be parsed
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code

if TYPE_CHECKING:
    from windtunnel.harness.artifact.documents import DocumentError


class Failure(click.ClickException):
    """An expected error: a message for stderr, and an exit code."""

    exit_code: int  # type: ignore[misc]  # click declares it for the class; ours differs by failure

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


def document_text(error: "DocumentError") -> str:
    """Return the message about a damaged file with the file's path, and what to do."""
    from windtunnel.harness.artifact.regular_file import UnsafeFileError
    from windtunnel.harness.artifact.run_dir import RunDir

    text, cause = error.located, error.__cause__
    is_unread = isinstance(cause, OSError) and not isinstance(cause, UnsafeFileError)
    if error.path is None or is_unread:
        return text
    run = RunDir(error.path.parent)
    if error.path == run.verdict:
        return f"{text}: run `windtunnel judge {run.path}`"
    if error.path in (run.manifest, run.case) and run.repro.is_file():
        return f"{text}: run the scenario again, with the command line in {run.repro}"
    return text


@contextmanager
def one_line() -> Iterator[None]:
    """Context manager that converts lower layers' expected errors to Failure. All other exceptions
    propagate, because they are defects.
    """
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
        raise Failure(document_text(error), exit_code.INCONCLUSIVE) from error
