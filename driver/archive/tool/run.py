"""The `run` command, which runs an archive until it receives a shutdown signal."""

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.archive.server.driver_child import DriverChild
from windtunnel.driver.archive.settings import archive_settings
from windtunnel.driver.archive.tool.command import RUN_EXIT_CODES
from windtunnel.driver.archive.tool.failure import OK, USAGE, Failure, code_of
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.base.shutdown_signal import ShutdownSignal
from windtunnel.driver.settings.raw_settings import RawSettings

CHECK_INTERVAL_S = 0.2
"""The interval in seconds at which the main thread checks that the archive's agents and its driver
are still running.
"""


@click.command(short_help="Run an archive: record and replay for clients.", epilog=RUN_EXIT_CODES)
@click.argument("property_files", nargs=-1, metavar="[PROPERTIES_FILE]...")
@click.option(
    "-D",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a property, such as aeron.archive.id=7.",
)
@click.option(
    "--dir",
    "archive_dir",
    type=click.Path(path_type=Path),
    help="The archive's directory (aeron.archive.dir).",
)
@click.option(
    "--aeron-dir", type=click.Path(path_type=Path), help="The media driver's directory (aeron.dir)."
)
@click.option("--with-driver", is_flag=True, help="Also start a media driver, as a child process.")
@click.option(
    "--settings", "list_settings", is_flag=True, help="List all settings with their defaults."
)
def run(
    property_files: tuple[str, ...],
    options: tuple[str, ...],
    archive_dir: Path | None,
    aeron_dir: Path | None,
    with_driver: bool,
    list_settings: bool,
) -> int:
    """Run an archive, with an existing media driver or with a new one.

    \b
      windtunnel archive run --with-driver \\
        -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010 \\
        -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0

    Settings are read from the environment (AERON_ARCHIVE_DIR, ...), then from property files, then
    from -D options. Later settings override earlier ones. The command prints `archive ready` when
    clients can connect, and shuts down cleanly on SIGINT, SIGTERM and SIGHUP.
    """
    if list_settings:
        click.echo(archive_settings.describe(), nl=False)
        return OK
    paths = (("dir", archive_dir), ("aeron_dir", aeron_dir))
    overrides = {name: path for name, path in paths if path}
    try:
        given = RawSettings(dict(os.environ))
        for path in property_files:
            given.load_file(path)
        for option in options:
            given.set_line("-D", option)
        settings = archive_settings.from_texts(given.texts, **overrides)
        if settings.threading_mode == archive_settings.INVOKER:
            # This process has no caller that could invoke the archive.
            settings = replace(settings, threading_mode=archive_settings.SHARED)
    except ConfigurationError as error:
        raise Failure(str(error), USAGE) from error
    # Not before: a property file may be a pipe that nobody writes to, which a signal must end.
    shutdown = ShutdownSignal.on_signals()
    with ExitStack() as stack:
        child = None
        if with_driver:
            others = [f"-D{each}" for each in options if not each.startswith("aeron.archive.")]
            child = DriverChild(settings.aeron_dir, [*property_files, *others])
            stack.callback(child.close)
        archive = stack.enter_context(Archive(settings))
        click.echo(
            f"archive ready pid={os.getpid()} id={archive.archive_id} dir={settings.dir} "
            f"aeron-dir={settings.aeron_dir}"
        )
        while not shutdown.wait(CHECK_INTERVAL_S):
            failure = archive.failure or (child.failure if child is not None else None)
            if failure is not None:
                raise Failure(f"the archive has failed: {failure}", code_of(failure))
    return OK


COMMANDS = (run,)
