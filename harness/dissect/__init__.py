"""Parsers of captures, frames, logs and counter files, independent of the driver's code.

All offsets are taken from the specification again, on purpose: nothing here is shared with the
driver, so a wrong offset in the driver cannot go unnoticed by the judge. The parsers report what
the bytes contain, not whether it is correct.
"""
