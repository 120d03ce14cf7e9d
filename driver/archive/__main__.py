"""`python -m windtunnel.driver.archive`: the command line that `windtunnel archive` runs."""

import sys

from windtunnel.driver.archive.tool.program import main

if __name__ == "__main__":
    sys.exit(main())
