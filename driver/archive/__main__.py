"""`python -m windtunnel.driver.archive`: the tools, which `windtunnel archive` starts."""

import sys

from windtunnel.driver.archive.tool.program import main

if __name__ == "__main__":
    sys.exit(main())
