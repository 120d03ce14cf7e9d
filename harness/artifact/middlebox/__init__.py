"""Files that the middlebox writes to a run folder: ledger, decision log, netem readings."""
