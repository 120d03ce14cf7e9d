"""Commands that inspect a driver, its files, or captures; none of them starts a run."""
