"""The verb that is an archive: settings in, recordings and replays until a signal ends it."""

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.archive.server.driver_child import DriverChild
from windtunnel.driver.archive.settings import archive_settings
from windtunnel.driver.archive.tool.failure import OK, USAGE, Failure, code_of
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.base.shutdown_signal import ShutdownSignal
from windtunnel.driver.settings.given import GivenSettings

LOOK_INTERVAL_S = 0.2
"""How often the main thread looks whether everybody lives."""


@click.command(short_help="Be an archive: record and replay for clients.")
@click.argument("property_files", nargs=-1, metavar="[PROPERTIES_FILE]...")
@click.option("-D", "options", multiple=True, metavar="NAME=VALUE", help="A setting, by its name.")
@click.option("--dir", "where", type=click.Path(path_type=Path), help="aeron.archive.dir")
@click.option("--aeron-dir", type=click.Path(path_type=Path), help="aeron.dir")
@click.option("--with-driver", is_flag=True, help="Start a media driver of its own, too.")
@click.option("--settings", "describes", is_flag=True, help="List every setting and its default.")
def run(
    property_files: tuple[str, ...],
    options: tuple[str, ...],
    where: Path | None,
    aeron_dir: Path | None,
    with_driver: bool,
    describes: bool,
) -> int:
    """Be an archive, beside the media driver of aeron.dir or with one of its own.

    \b
      windtunnel archive run --with-driver \\
        -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010 \\
        -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0

    Settings come from the environment (AERON_ARCHIVE_DIR, ...), from property files and from -D
    options, the later winning. It says `archive ready` when clients can connect, and stops in good
    order on SIGINT and SIGTERM.
    """
    if describes:
        click.echo(archive_settings.describe(), nl=False)
        return OK
    note = ShutdownSignal.on_signals()
    overrides = {name: path for name, path in (("dir", where), ("aeron_dir", aeron_dir)) if path}
    try:
        given = GivenSettings(dict(os.environ))
        for path in property_files:
            given.give_file(path)
        for option in options:
            given.give_line("-D", option)
        settings = archive_settings.from_texts(given.texts, **overrides)
        if settings.threading_mode == archive_settings.INVOKER:
            # In a process of its own there is nobody else to invoke it.
            settings = replace(settings, threading_mode=archive_settings.SHARED)
    except ConfigurationError as error:
        raise Failure(str(error), USAGE) from error
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
        while not note.wait(LOOK_INTERVAL_S):
            failure = archive.failure or (child.failure if child is not None else None)
            if failure is not None:
                raise Failure(f"the archive cannot go on: {failure}", code_of(failure))
    return OK


VERBS = (run,)
