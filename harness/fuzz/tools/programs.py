"""The commands that read other people's files: their arguments, their inputs and their exit codes.

Placeholders in the arguments: {run}, {suite} and so on are the copies of the folders of
`base_files`, {file} is the damaged file, and {out} a folder for results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

ABSENT_DRIVER = ("--fidelity", "sim", "--publisher", "no-such-driver", "--out", "{out}")
"""Arguments with which `replay` and `shrink` read and check a whole folder but start nothing."""
SHOWN, JUDGED, REPEATED = (0, 1, 2), (0, 1, 2), (2, 64)
CAPTURES = ("a.pcap", "a.pcapng", "*.gz", "*.xz")
DECIDED = ("decisions.bin", "case.json")
REPLAYED = (*DECIDED, "run.json", "scenario.yaml", "ledger.json", "payload.bin")
LOGS = ("publications/*", "images/*")
SHARED = ("archive.catalog*", "archive-mark.*", "*.rec")


@dataclass(frozen=True)
class Program:
    """One command line, and what a correct run of it may do."""

    name: str
    folder: str
    words: tuple[str, ...]
    codes: tuple[int, ...]
    """The exit codes that the command documents for damaged files."""
    damaged: tuple[str, ...] = ("*",)
    """Patterns of the files that are damaged."""
    writes: tuple[str, ...] = ()
    """Patterns of the files that it may create or change in its folder."""
    weight: int = 4
    """Its share of all files. Slow commands have a small one."""
    is_repeatable: bool = True
    """Whether its output depends on its files only, and not on the time."""

    @property
    def is_archive_tool(self) -> bool:
        return self.words[0] == "archive"

    @property
    def is_judge(self) -> bool:
        return self.words[0] == "judge"

    def judges(self, printed: str) -> bool:
        """Return whether the command has printed a verdict. Its outcome is HARNESS if documents of
        the run that the harness should have written cannot be read.
        """
        return self.is_judge and "HARNESS" in printed

    @property
    def names_file(self) -> bool:
        """Whether the command line names the damaged file."""
        return "{file}" in self.words

    @property
    def may_follow(self) -> bool:
        """Whether a link may be opened: a file that the user names may be a link, and directories
        of drivers are not evidence that people exchange.
        """
        return self.names_file or self.folder == "aeron"

    def folders(self) -> list[str]:
        """Return the names of the folders that the command reads."""
        return [self.folder, *(name for name in ("suite",) if f"{{{name}}}" in self.words)]

    def reads(self, name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in self.damaged)

    def may_write(self, name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in self.writes)


def _inspectors() -> list[Program]:
    made = []
    more: tuple[str, ...]
    for name, file in (
        ("stat", "cnc.dat"), ("streams", "cnc.dat"), ("backlog", "cnc.dat"), ("errors", "cnc.dat"),
        ("driver-info", "cnc.dat"), ("loss", "loss-report.dat"),
    ):  # fmt: skip
        once = () if name == "driver-info" else ("--once",)
        for more in ((), ("--json",)):
            words = (name, "--dir", "{aeron}", *once, *more)
            made.append(
                Program(" ".join((name, *more)), "aeron", words, SHOWN, (file,), weight=4,
                        is_repeatable=False)
            )  # fmt: skip
    for more in ((), ("--json", "--over-zeroes")):
        words = ("logbuffer", "{file}", *more)
        made.append(Program(" ".join(("logbuffer", *more)), "aeron", words, SHOWN, LOGS, weight=5))
    return made


def _archive_tools() -> list[Program]:
    made = []
    for words, writes in (
        (("describe", "--all"), ()),
        (("describe", "--json"), ()),
        (("dump", "--limit", "20"), ()),
        (("dump", "1", "--json"), ()),
        (("errors",), ()),
        (("pid",), ()),
        (("count",), ()),
        (("capacity",), ()),
        (("capacity", "2097152"), SHARED),
        (("verify", "--read-only", "-a"), ()),
        (("verify", "-a", "--json", "--truncate"), SHARED),
        (("checksum", "CRC-32C", "-a"), SHARED),
        (("delete-orphans", "--yes"), SHARED),
        (("mark-invalid", "1"), SHARED),
        (("recover", "--dry-run"), ()),
        (("recover",), ("archive.catalog*", "archive-mark.*")),
    ):
        command = ("archive", *words, "--dir", "{archive}")
        weight = 2 if words[0] == "dump" else 5
        made.append(
            Program(f"archive {' '.join(words)}", "archive", command, SHOWN, ("*",), writes, weight,
                    is_repeatable=words[0] != "describe")
        )  # fmt: skip
    return made


PROGRAMS = (
    Program("judge", "run", ("judge", "{run}"), JUDGED, writes=("verdict.json",), weight=8),
    Program("judge --json", "run", ("judge", "{run}", "--json"), JUDGED, writes=("verdict.json",)),
    Program("report", "run", ("report", "{run}"), (0, 2), writes=("report.html",), weight=1),
    Program(
        "report SUITE", "suite", ("report", "{suite}"), (0, 2), ("*.json",), ("*report.html",), 1
    ),
    Program("decisions", "run", ("decisions", "{run}"), (0, 2), DECIDED, weight=8),
    Program("compare", "run", ("compare", "{run}", "{suite}"), (0, 2, 64), ("*.json",), weight=6),
    Program("replay", "run", ("replay", "{run}", *ABSENT_DRIVER), REPEATED, REPLAYED, weight=10),
    Program(
        "shrink", "run", ("shrink", "{run}", *ABSENT_DRIVER), REPEATED,
        (*REPLAYED, "verdict.json"), weight=8,
    ),
    Program("analyze", "captures", ("analyze", "{file}"), (0, 1, 2, 64), CAPTURES, weight=12),
    Program(
        "analyze --json", "captures", ("analyze", "{file}", "--json", "--messages"),
        (0, 1, 2, 64), CAPTURES,
    ),
    Program(
        "analyze --out", "captures", ("analyze", "{file}", "--out", "{out}/tables", "--outcomes"),
        (0, 1, 2, 64), CAPTURES, weight=2,
    ),
    Program("analyze RUN", "run", ("analyze", "{run}"), (0, 1, 2, 64), ("captures/*", "*.json")),
    Program(
        "analyze --report", "run", ("analyze", "{run}", "--report"), (0, 1, 2, 64),
        ("captures/*", "*.json"), ("analysis.*", "report.html"), 1,
    ),
    Program(
        "from-capture", "captures",
        ("from-capture", "{file}", "--force", "--out", "{out}/made.yaml"), (0, 2, 64), CAPTURES,
        weight=8,
    ),
    Program(
        "from-capture 2", "captures",
        ("from-capture", "{captures}/a.pcap", "{file}", "--force", "--out", "{out}/made.yaml"),
        (0, 2, 64), ("a.pcapng", "*.gz", "*.xz"),
    ),
    Program("explain", "scenario", ("explain", "{file}"), (0, 64), weight=12),
    Program("explain --json", "scenario", ("explain", "{file}", "--json"), (0, 64)),
    Program("run", "scenario", ("run", "{file}", *ABSENT_DRIVER), (64,)),
    *_inspectors(),
    *_archive_tools(),
)  # fmt: skip
BY_NAME = {program.name: program for program in PROGRAMS}


def mains() -> tuple[Callable[[Sequence[str]], int], Callable[[Sequence[str]], int]]:
    """Return the main functions of `windtunnel` and of `windtunnel archive`."""
    from windtunnel.driver.archive.tool.program import main as archive_main
    from windtunnel.harness.cli.root import main

    return main, archive_main
