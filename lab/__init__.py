"""Labs that a program controls: hosts with media drivers, links between them, and its programs.

    from windtunnel.lab import open_lab

The pytest plugin has the same labs as the fixture `windtunnel`, and runs scenarios as tests.
"""

from windtunnel.lab.application import Application
from windtunnel.lab.errors import LabError
from windtunnel.lab.lab import Counter, Lab
from windtunnel.lab.link import Driver, Link
from windtunnel.lab.opening import LabOpening, open_lab
from windtunnel.lab.options import LinkOptions
from windtunnel.lab.plain import PlainApplication, PlainDriver, PlainLab, PlainLink
from windtunnel.lab.verdict import Verdict

__all__ = [
    "Application",
    "Counter",
    "Driver",
    "Lab",
    "LabError",
    "LabOpening",
    "Link",
    "LinkOptions",
    "PlainApplication",
    "PlainDriver",
    "PlainLab",
    "PlainLink",
    "Verdict",
    "open_lab",
]
