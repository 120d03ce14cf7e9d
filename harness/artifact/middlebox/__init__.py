"""What the middlebox leaves in a run folder: ledger, decision log, netem readings."""
