"""Commands that inspect a driver, its files, or captures. None of them starts a run."""
