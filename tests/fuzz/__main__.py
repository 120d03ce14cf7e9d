"""Runs the full fuzz attacks: python -m tests.fuzz [--datagrams N] [--commands N] [--turns N]
[--requests N] [--seed N]

Exit codes: 0 all checks passed; an AssertionError, or a signal, otherwise. The seed is printed
first; it reproduces the attack. If it is odd, the streams that are attacked with datagrams have
Windtunnel's modes of loss recovery.
"""

import argparse
import faulthandler
import random
import tempfile
from functools import partial
from pathlib import Path

from tests.fuzz import archive_requests, commands, datagrams, shared_memory


def main() -> None:
    """Run all four attacks in sequence; 0 skips one."""
    parser = argparse.ArgumentParser(description="Attacks on a live driver and archive.")
    parser.add_argument("--datagrams", type=int, default=10_000_000)
    parser.add_argument("--commands", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=40_000, help="of corrupting shared memory")
    parser.add_argument("--requests", type=int, default=1_000_000, help="at an archive")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    chosen = parser.parse_args()
    print(f"seed={chosen.seed}", flush=True)
    faulthandler.enable()
    # An odd seed turns the modes of loss recovery on.
    modes = bool(chosen.seed % 2)
    for attack, count in (
        (partial(datagrams.attack, modes=modes), chosen.datagrams),
        (commands.attack, chosen.commands),
        (shared_memory.attack, chosen.turns),
        (archive_requests.attack, chosen.requests),
    ):
        if count > 0:
            with tempfile.TemporaryDirectory() as folder:
                attack(Path(folder), count, chosen.seed, lambda text: print(text, flush=True))
    print("all held", flush=True)


if __name__ == "__main__":
    main()
