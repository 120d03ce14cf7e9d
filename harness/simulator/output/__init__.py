"""The run folder that a simulated run leaves: captures, counters, ledger."""
