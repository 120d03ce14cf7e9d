"""Counters and errors in the CnC file of a running driver, read by the harness's tables."""

from windtunnel.harness.dissect.driver_files.cnc_file import map_cnc
from windtunnel.harness.dissect.driver_files.counter_key import SYSTEM, system_counter

RETRANSMITS_SENT, OVER_RUNS, ERRORS = 11, 13, 15


class DriverFacts:
    """Counters and errors of the driver of a directory."""

    def __init__(self, directory):
        self._cnc = map_cnc(directory / "cnc.dat")

    def values(self, type_id):
        """The values of all counters of a type that are in use."""
        return [each.final_value for each in self._cnc.counters() if each.type_id == type_id]

    def total(self, counter_id):
        """The value of a system counter."""
        found = system_counter(self._cnc.counters(), counter_id)
        assert found.type_id == SYSTEM
        return found.final_value

    def errors(self):
        """Texts of the distinct error log."""
        return [each.text for each in self._cnc.errors()]
