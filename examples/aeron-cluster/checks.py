"""Checks that all members of the cluster have applied the same commands."""

from windtunnel.harness.checks import Evidence, check

MEMBERS = ("member-0", "member-1", "member-2")
COMMANDS = 3_000


@check
def members_have_applied_the_same(evidence: Evidence):
    """A command has the same checksum, which is that of all commands so far, at each member."""
    known: dict[int, tuple[str, str]] = {}
    for member in MEMBERS:
        for line in evidence.log_lines(member):
            word, *rest = line.split()
            if word != "applied":
                continue
            number, checksum = int(rest[0]), rest[1]
            other, expected = known.setdefault(number, (member, checksum))
            if checksum != expected:
                yield f"command {number} has the checksum {checksum} at {member}, "
                yield f"and {expected} at {other}"
                return
    if len(known) < COMMANDS:
        yield f"expected {COMMANDS} commands, found {len(known)}"
