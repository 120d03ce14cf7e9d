"""Processes: started or forked, watched, signalled and reaped."""
