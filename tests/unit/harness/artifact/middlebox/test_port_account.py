"""The accounts of packets received from one of several hosts, and of fault rules."""

from windtunnel.harness.artifact.middlebox.ledger import Ledger, PortAccount, RuleAccount


def test_ports_are_read_back_as_written(tmp_path):
    account = PortAccount(received=10, strays=2, unlinked=1, copies=4)
    assert account.handed_on == 11
    Ledger({}, {}, {"a": account}).write(tmp_path / "ledger.json")
    assert Ledger.read(tmp_path / "ledger.json").ports == {"a": account}
    Ledger({}).write(tmp_path / "ledger.json")
    assert "ports" not in (tmp_path / "ledger.json").read_text()


def test_the_former_names_of_a_rules_counts_are_read(tmp_path):
    file = tmp_path / "ledger.json"
    Ledger({}, {"lose": RuleAccount(eligible=9, selected=3)}).write(file)
    text = file.read_text()
    former = text.replace("eligible", "tried").replace("selected", "struck")
    assert former != text
    file.write_text(former)
    assert Ledger.read(file).rules == {"lose": RuleAccount(eligible=9, selected=3)}
