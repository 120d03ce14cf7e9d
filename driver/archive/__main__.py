"""Entry point of `python -m windtunnel.driver.archive`, which runs the `windtunnel archive` command
line.
"""

import sys

from windtunnel.driver.kernels import cache_error

UNREADABLE = 2


def main() -> int:
    """Run the command line, and return its exit code."""
    try:
        # Kernels are loaded by imports, which can fail.
        from windtunnel.driver.archive.tool import program
    except OSError as error:
        text = f"{error.filename}: {error.strerror}{cache_error.advice(error)}"
        print(f"windtunnel archive: {text}", file=sys.stderr, flush=True)
        return UNREADABLE
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
