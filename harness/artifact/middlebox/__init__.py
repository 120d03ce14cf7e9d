"""Files that the middlebox writes to a run folder: ledger, decision log and netem.json."""
