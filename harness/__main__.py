"""Entry point of the `windtunnel` command, which is implemented in `windtunnel.harness.cli`."""

import sys

if __name__ == "__main__" and not __package__:
    # If this file is run by path, as spark-submit does, its folder is the first entry in sys.path,
    # and its modules would shadow standard library modules of the same name.
    del sys.path[0]

from windtunnel.harness.cli.root import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
