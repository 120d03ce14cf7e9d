"""Replaces numba's files of compiled builds."""

import fcntl
from pathlib import Path


class Kept:
    """Checks during a save whether another process could save at the same time."""

    def __init__(self, folder: Path, lock_file: str) -> None:
        self._cache_path = str(folder)
        self._lock_file = lock_file
        self.could_others: list[bool] = []

    def save(self, key: str, data: str) -> None:
        with Path(self._cache_path, self._lock_file).open("rb") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.could_others.append(False)
            else:
                self.could_others.append(True)
