"""Processes: how they are started or forked, watched, signalled and reaped."""
