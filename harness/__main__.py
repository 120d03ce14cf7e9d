"""Process entry of the `windtunnel` command; everything it does is in `harness.cli`."""

import sys

from harness.cli.root import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
