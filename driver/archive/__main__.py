"""Entry point of `python -m windtunnel.driver.archive`, which runs the `windtunnel archive` command
line.
"""

import sys

from windtunnel.driver.archive.tool.program import main

if __name__ == "__main__":
    sys.exit(main())
