"""`python -m driver.archive`: the tools, which `windtunnel archive` starts."""

import sys

from driver.archive.tool.program import main

if __name__ == "__main__":
    sys.exit(main())
