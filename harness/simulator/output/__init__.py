"""Modules that write the run folder of a simulated run: captures, counters and ledger."""
