"""What an attack prints: lines of text, or lines of JSON."""

import json
from pathlib import Path

from windtunnel.harness.fuzz.finding import Finding


class Output:
    """Prints what an attack reports, on standard output."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def report(self, document: dict[str, object], text: str) -> None:
        """Print a document, or its text."""
        print(json.dumps(document) if self.as_json else text, flush=True)

    def found(self, found: Finding, path: Path) -> None:
        """Print a violation, and how to replay it."""
        self.report(
            {"violation": found.text, "file": str(path)},
            f"violated: {found.text}\nreplay: windtunnel fuzz --replay {path}",
        )

    def message(self, text: str) -> None:
        """Print a line for people only."""
        if not self.as_json:
            print(text, flush=True)
