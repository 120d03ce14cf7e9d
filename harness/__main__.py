"""Process entry of the `windtunnel` command; everything it does is in `windtunnel.harness.cli`."""

import sys

if __name__ == "__main__" and not __package__:
    # Started as a file, as spark-submit does: this folder would come first on the path, and its
    # modules would hide those of the same name in the standard library.
    del sys.path[0]

from windtunnel.harness.cli.root import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
