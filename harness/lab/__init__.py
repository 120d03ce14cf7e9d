"""Labs that a program controls: hosts with media drivers, links between them, and its programs.

    from windtunnel.harness.lab import open_lab

The pytest plugin has the same labs as the fixture `windtunnel`, and runs scenarios as tests.
"""

from windtunnel.harness.lab.application import Application
from windtunnel.harness.lab.errors import LabError
from windtunnel.harness.lab.lab import Counter, Lab
from windtunnel.harness.lab.link import Driver, Link
from windtunnel.harness.lab.opening import LabOpening, open_lab
from windtunnel.harness.lab.options import LinkOptions
from windtunnel.harness.lab.plain import PlainApplication, PlainDriver, PlainLab, PlainLink
from windtunnel.harness.lab.plain_target import PlainTarget
from windtunnel.harness.lab.target import Target
from windtunnel.harness.lab.verdict import Verdict

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
    "PlainTarget",
    "Target",
    "Verdict",
    "open_lab",
]
