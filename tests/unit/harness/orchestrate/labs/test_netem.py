"""Setting netem through a lab: the commands for tc, the verification, and the errors."""

import json
from pathlib import Path

import pytest

from tests.unit.harness.scenario.resolved.test_case import resolved
from windtunnel.harness.artifact.middlebox.netem import NetemAccount
from windtunnel.harness.orchestrate.lab import LabError, Unsupported
from windtunnel.harness.orchestrate.labs.netem import Netem
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase

IMPAIRMENTS = ImpairmentCase(link="a->b", loss=LossCase(model="iid", shares_ppb=(20_000_000,)))


def answer(loss=0.02, waiting=0, packets=0, dropped=0):
    options = {"limit": 10_000, "loss-random": {"loss": loss, "correlation": 0}, "gap": 0}
    qdisc = {"kind": "netem", "root": True, "options": options}
    return json.dumps(
        [{**qdisc, "packets": packets, "drops": dropped, "qlen": waiting, "requeues": 0}]
    )


class EndedProcess:
    """A process that has ended with an exit code."""

    def __init__(self, code):
        self._code = code

    def wait(self, timeout_s):
        return self._code


class FakeLab:
    """A lab in which `tc` prints these answers one after another, and repeats the last one."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.commands = []

    def mid_interfaces(self):
        return "to-a", "to-b"

    def spawn(self, place, argv, *, env=None, log):
        assert place == "mid"
        self.commands.append(" ".join(argv))
        code, text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        with log.open("a") as file:
            file.write(text)
        return EndedProcess(code)


def created(folder: Path, lab, impairments=IMPAIRMENTS):
    case = resolved().model_copy(update={"backend": "netem", "impairments": (impairments,)})
    return Netem(lab, case, folder / "netem.log")


def test_sets_the_qdisc_towards_the_receiver_and_reads_it_back(tmp_path):
    lab = FakeLab((0, ""), (0, answer()))
    netem = created(tmp_path, lab)
    netem.apply()
    assert lab.commands == [
        "tc qdisc add dev to-b root netem limit 10000 loss random 2%",
        "tc -j -s qdisc show dev to-b",
    ]
    assert netem.account.links["a->b"].options["loss-random"]["loss"] == 0.02


def test_the_other_direction_is_on_the_other_interface(tmp_path):
    lab = FakeLab((0, ""), (0, answer()))
    created(tmp_path, lab, IMPAIRMENTS.model_copy(update={"link": "b->a"})).apply()
    assert "dev to-a" in lab.commands[0]


def test_another_value_than_the_requested_one_is_a_harness_error(tmp_path):
    lab = FakeLab((0, ""), (0, answer(loss=0.03)))
    with pytest.raises(LabError, match=r"expected 0\.02, found 0\.03"):
        created(tmp_path, lab).apply()


def test_a_kernel_without_netem_is_unsupported(tmp_path):
    text = "Error: Specified qdisc kind is unknown."
    with pytest.raises(Unsupported, match="--kernel uml"):
        created(tmp_path, FakeLab((2, text))).apply()


def test_any_other_error_of_tc_is_a_harness_error(tmp_path):
    with pytest.raises(LabError, match="exit code 2: RTNETLINK answers: no"):
        created(tmp_path, FakeLab((2, "RTNETLINK answers: no"))).apply()


def test_output_that_cannot_be_parsed_is_a_harness_error(tmp_path):
    with pytest.raises(LabError, match="cannot parse the output of tc"):
        created(tmp_path, FakeLab((0, ""))).apply()


def test_a_qdisc_that_cannot_be_removed_is_a_harness_error(tmp_path):
    lab = FakeLab((0, ""), (0, answer()), (0, answer()), (2, "busy"))
    netem = created(tmp_path, lab)
    netem.apply()
    with pytest.raises(LabError, match="cannot be removed: busy"):
        netem.close()


def test_waits_for_the_last_packet_and_counts(tmp_path):
    counted = answer(packets=98, dropped=2)
    lab = FakeLab((0, ""), (0, answer()), (0, answer(waiting=5)), (0, counted), (0, ""))
    netem = created(tmp_path, lab)
    netem.apply()
    netem.close()
    assert lab.commands[-1] == "tc qdisc del dev to-b root"
    link = netem.account.links["a->b"]
    assert (link.packets, link.dropped, link.waiting) == (98, 2, 0)
    netem.account.write(tmp_path / "netem.json")
    assert NetemAccount.read(tmp_path / "netem.json") == netem.account
