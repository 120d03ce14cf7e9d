"""The judge's own reading of bytes: captures, frames, logs and counter files.

Every offset here was read from the specification a second time, on purpose: this room never imports
the driver, so a wrong offset there cannot cancel itself out in a verdict. It knows what bytes say,
not whether they should say it.
"""
