"""Parsers for captures, frames, log buffers and counter files, independent of the driver's code.

The parsers deliberately define all offsets again, from the specification. They share no code with
the driver, so the judge notices a wrong offset in the driver. The parsers report what the bytes
contain, not whether it is correct.
"""
