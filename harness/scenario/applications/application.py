"""The applications of a scenario: programs of the user, which are started on the hosts.

    applications:
      - id: feed
        on: a
        command: [java, -cp, feed.jar, com.example.Feed]
        env: {FEED_CHANNEL: "aeron:udp?endpoint=${b}:24325"}
        driver: shared
        limits: {memory: 512MiB, cpus: 1.5}
        ready: {log: "feed started", within: 20s}
        stop: {signal: TERM, within: 10s}
        expect: {exit: 0, log_never: ["Exception"], ends_by_itself: true}

They are started in the order of the file, each when the one before it is ready. No shell reads a
command: each item of the list is one argument. In containers, an application may have an image of
its own: `image: example/feed:1.2`, or `build: ./feed`, a folder with a Dockerfile.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from windtunnel.harness.scenario.applications.driver_settings import plain_text
from windtunnel.harness.scenario.schema.table import Bytes, Duration, Name, Table
from windtunnel.harness.scenario.schema.units import shown

APPLICATIONS_MAX = 32
WORDS_MAX, WORD_LENGTH_MAX = 256, 4096
VARIABLES_MAX = 64
LOG_TEXTS_MAX, LOG_TEXT_LENGTH_MAX = 16, 200
WITHIN_NS_MAX = 600_000_000_000
EXIT_CODE_MAX = 255
IMAGE_LENGTH_MAX = 300
FOLDER_LENGTH_MAX = 300
MEMORY_BYTES_MIN, MEMORY_BYTES_MAX = 6 << 20, 1 << 44
CPUS_MIN, CPUS_MAX = 0.01, 1024.0
PROCESSES_MAX = 1 << 20
_WITHOUT_NUL = r"^[^\x00]*$"

Driver = Literal["shared", "embedded", "none"]
Signal = Literal["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"]


def _words(value: object) -> Any:
    if isinstance(value, str):
        text = "expected a list of words, such as [java, -cp, feed.jar, Feed], because no shell "
        raise ValueError(f"{text}splits a command, found {shown(value)!r}")
    return value


Word = Annotated[str, Field(max_length=WORD_LENGTH_MAX, pattern=_WITHOUT_NUL)]
Program = Annotated[tuple[Word, ...], BeforeValidator(_words)]
IMAGE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/:@-]*$"
USER_PATTERN = r"^[0-9]{1,10}(:[0-9]{1,10})?$"
User = Annotated[str, Field(pattern=USER_PATTERN), BeforeValidator(plain_text)]
Image = Annotated[str, Field(max_length=IMAGE_LENGTH_MAX, pattern=IMAGE_PATTERN)]
FOLDER_PATTERN = r"^(\./?|(\./)?[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*/?)$"
Folder = Annotated[str, Field(max_length=FOLDER_LENGTH_MAX, pattern=FOLDER_PATTERN)]
WorkingDir = Annotated[str, Field(max_length=FOLDER_LENGTH_MAX, pattern=r"^/[^\x00:]*$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
LogText = Annotated[
    str, Field(min_length=1, max_length=LOG_TEXT_LENGTH_MAX, pattern=r"^[^\x00\n]*$")
]


class Ready(Table):
    """How an application shows that it is ready."""

    log: LogText
    """Text that a line of its log contains. It is compared as it is: no character is special."""

    within_ns: Duration = Field(default=20_000_000_000, alias="within", gt=0, le=WITHIN_NS_MAX)
    """Time limit, from the start of the application. Default: 20s."""


class Stop(Table):
    """How an application is ended, unless it ends by itself."""

    signal: Signal = "TERM"
    """The signal that asks it to end. Default: TERM."""

    within_ns: Duration = Field(default=10_000_000_000, alias="within", gt=0, le=WITHIN_NS_MAX)
    """Time limit, from the signal. Then it is killed, and the run fails. Default: 10s."""


class RoundTrips(Table):
    """Limits of the round trips that an application reports, in lines `WT RTT nanoseconds`."""

    p50_most_ns: Duration | None = Field(default=None, alias="p50_at_most", gt=0)
    """Half of them are not longer. Default: no limit."""

    p99_most_ns: Duration | None = Field(default=None, alias="p99_at_most", gt=0)
    """99 % of them are not longer. Default: no limit."""

    longest_most_ns: Duration | None = Field(default=None, alias="longest_at_most", gt=0)
    """None of them is longer. Default: no limit."""


class ExpectedEnd(Table):
    """What is expected of an application, apart from being ready and ending in time."""

    exit_code: int | None = Field(default=None, alias="exit", ge=0, le=EXIT_CODE_MAX)
    """Its exit code, or 128 + N if signal N ends it. Default: 0, or 128 + N for the signal of
    `stop`.
    """

    log_never: tuple[LogText, ...] = Field(default=(), strict=False, max_length=LOG_TEXTS_MAX)
    """Texts that no line of its log contains. Default: none."""

    round_trips: RoundTrips = RoundTrips()
    """Limits of the round trips that it reports. Default: no limits."""

    ends_by_itself: bool = False
    """Whether it ends by itself, before `budget.wall`. The run then waits for it. Default: false,
    so the run ends it, and an earlier end is a failure.
    """


class Limits(Table):
    """Limits of what an application may use, in a container."""

    memory_bytes: Bytes | None = Field(
        default=None, alias="memory", ge=MEMORY_BYTES_MIN, le=MEMORY_BYTES_MAX
    )
    """Memory, such as 512MiB. The application is killed when it needs more. Default: no limit."""

    cpus: float | None = Field(default=None, ge=CPUS_MIN, le=CPUS_MAX)
    """Processors that it may use at a time, such as 1.5. Default: all."""

    processes: int | None = Field(default=None, ge=1, le=PROCESSES_MAX)
    """Number of its processes and threads. Default: 4096."""


class Service(Table):
    """A service of a compose file."""

    file: str = Field(max_length=FOLDER_LENGTH_MAX)
    """The compose file, in the folder of the scenario file or below it."""

    service: str = Field(max_length=FOLDER_LENGTH_MAX)
    """Name of the service."""


class Application(Table):
    """A program of the user that runs on a host."""

    id: Name
    """Name of the application, unique in the scenario. It is part of its file names."""

    host: Name = Field(alias="on")
    """The host on which it runs."""

    image: Image | None = None
    """The container image that it runs in, which this machine has already. Only with `fidelity:
    [compose]`. Default: that of Windtunnel, in containers.
    """

    build: Folder | None = None
    """A folder with a Dockerfile, from which its image is built before the run: that of the
    scenario file, or one below it, such as `./feed`. In place of `image`.
    """

    compose: Service | None = None
    """A service of a compose file, from which `image` or `build`, `command`, `env`, `user` and
    `working_dir` are taken, unless they are given here. Default: none.
    """

    user: User | None = None
    """The user that it is, and the group: numbers such as 1000 or "1000:1000". It is also in group
    0, which may use the files of the host's driver. Only with `image` or `build`. Default: root,
    without any capability.
    """

    working_dir: WorkingDir | None = None
    """The folder of the image in which it starts. Only with `image` or `build`. Default: that of
    the image.
    """

    command: Program = Field(default=(), strict=False, max_length=WORDS_MAX)
    """The program and its arguments. Default: those of `image` or `build`.

    `${b}` is the address of host b, `${aeron.dir}` the directory of the application's driver,
    `${scenario.dir}` the folder of the scenario file, and `${harness.python}` the Python
    interpreter that runs Windtunnel.
    """

    env: dict[VariableName, Annotated[Word, BeforeValidator(plain_text)]] = Field(
        default_factory=dict, max_length=VARIABLES_MAX
    )
    """Environment variables, with the same placeholders. They are added to those of `windtunnel
    run`, without its `AERON_*`. Default: none.
    """

    driver: Driver = "shared"
    """`shared`: it uses the host's driver, and `AERON_DIR` is its directory. `embedded`: it has a
    driver of its own, and `AERON_DIR` is a directory for it. `none`: it has no driver. Default:
    shared.
    """

    limits: Limits = Limits()
    """Limits of what it may use. Only with `fidelity: [compose]`."""

    ready: Ready | None = None
    """What the next application, and the traffic, wait for. Default: nothing."""

    stop: Stop = Stop()
    """How it is ended. Default: with SIGTERM."""

    expect: ExpectedEnd = ExpectedEnd()
    """What is expected of its end and of its log."""
