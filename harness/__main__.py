"""Process entry of the `windtunnel` command; everything it does is in `harness.cli`."""

import sys

if __name__ == "__main__" and not __package__:
    # Started as a file, as spark-submit does: this folder comes first on the path then, and its
    # rooms would stand for modules of the same name in Python's own library.
    sys.path[0] = sys.path[0].removesuffix("harness").rstrip("/") or "."

from harness.cli.root import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
