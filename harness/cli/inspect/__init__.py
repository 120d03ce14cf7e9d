"""Commands that inspect a driver, its files, or captures; none starts a run."""
