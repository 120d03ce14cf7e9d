"""A program that a fork server's child runs in a test: its first argument selects what it does."""

import atexit
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

WAIT_S = 60.0


def main() -> int:
    match sys.argv[1:]:
        case ["tell"]:
            print(__name__, sys.argv[0], os.getcwd(), sorted(os.environ), flush=True)
            print("to stderr", file=sys.stderr)
        case ["exit", code]:
            return int(code)
        case ["say", text]:
            sys.exit(text)
        case ["raise"]:
            raise ValueError("of the program's own")
        case ["abort"]:
            os.abort()
        case ["at-exit"]:
            atexit.register(print, "left in order")
            threading.Thread(target=lambda: (time.sleep(0.1), print("thread has ended"))).start()
        case ["wait"]:
            print("waiting", flush=True)
            time.sleep(WAIT_S)
        case ["family"]:
            child = subprocess.Popen(["sleep", str(WAIT_S)])
            print(child.pid, flush=True)
            time.sleep(WAIT_S)
        case ["network"]:
            print(sorted(path.name for path in Path("/sys/class/net").iterdir()), flush=True)
            print(os.stat("/proc/self/ns/net").st_ino, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
