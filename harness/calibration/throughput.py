"""Measures how many datagrams per second the relay forwards without loss or growing lag.

    sender (bursts of 1 kB frames) --> relay --> sink         at 25 k/s, 50 k/s, 75 k/s, ...

A step passes if the sender kept its pace, the relay kept up, and the relay's ledger shows that all
datagrams were sent: none lost by the kernel, none dropped, none unaccounted for. The last step that
passes is the result. The kernel's buffer for the relay is larger than the data of one step, so a
relay that is too slow loses nothing and is detected by its lag. `calibrate` measures configured
delays.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.middlebox.ledger import LinkAccount
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.calibration.plan import Impairment
from windtunnel.harness.calibration.rounds import Round, case_of, open_lab

STEPS_PER_S = tuple(range(25_000, 300_001, 25_000))
PACE_SHARE_MIN = 0.98
"""Minimum share of the requested pace. Below it, the sender is the bottleneck."""
LAG_P50_MAX_NS = 2_000_000
"""Maximum median lag. Forwarding one burst takes less time, and a growing queue takes more."""


@dataclass(frozen=True)
class Step:
    """One step of the throughput measurement: the load on the relay, and the result."""

    ordered_per_s: int
    sent_per_s: float
    packets: int
    account: LinkAccount

    @property
    def trouble(self) -> str:
        """The reason why the step failed, or an empty string if it passed."""
        account = self.account
        if account.unaccounted or account.datagrams_held_at_end:
            return f"{account.unaccounted} datagrams are unaccounted for"
        if lost := self.packets - account.datagrams_out:
            return f"{lost} of {self.packets} datagrams lost, {account.kernel_drops} by the kernel"
        if (lag_ns := account.lag_ns.get("p50", 0)) > LAG_P50_MAX_NS:
            return f"the relay fell behind: its median lag is {lag_ns / 1e6:,.1f} ms"
        if self.sent_per_s < PACE_SHARE_MIN * self.ordered_per_s:
            return f"the sender reached only {self.sent_per_s:,.0f} datagrams/s"
        return ""


def relay_steps(seconds: float, report: Callable[[str], None]) -> list[Step]:
    """Increase the load on the relay in steps that each take `seconds`, until a step fails. Returns
    all steps.

    Raises LabError, RunFailed or Void if a load cannot be run.
    """
    baseline = Impairment("baseline", None, 0)
    steps: list[Step] = []
    with (
        tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as name,
        open_lab(Path(name)) as lab,
    ):
        for ordered_per_s in STEPS_PER_S:
            folder = RunDir(Path(name) / str(ordered_per_s))
            folder.make()
            packets = round(seconds * ordered_per_s)
            made = Round(lab, folder, case_of(lab, baseline, "relay", seed=1))
            sent_per_s, account = made.flood(packets, ordered_per_s)
            steps.append(Step(ordered_per_s, sent_per_s, packets, account))
            report(f"relay: {ordered_per_s:,} datagrams/s: {steps[-1].trouble or 'no loss'}")
            if steps[-1].trouble:
                break
    return steps
