"""Writers of a simulated run's folder: captures, counters, ledger."""
