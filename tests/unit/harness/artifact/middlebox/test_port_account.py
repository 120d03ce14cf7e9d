"""The account of packets received from one of several hosts."""

from windtunnel.harness.artifact.middlebox.ledger import Ledger, PortAccount


def test_ports_are_read_back_as_written(tmp_path):
    account = PortAccount(received=10, strays=2, unlinked=1, copies=4)
    assert account.handed_on == 11
    Ledger({}, {}, {"a": account}).write(tmp_path / "ledger.json")
    assert Ledger.read(tmp_path / "ledger.json").ports == {"a": account}
    Ledger({}).write(tmp_path / "ledger.json")
    assert "ports" not in (tmp_path / "ledger.json").read_text()
