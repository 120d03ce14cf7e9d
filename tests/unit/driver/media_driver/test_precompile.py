"""Agents neither load nor compile kernels during their duty cycles."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.driver.kernels import jit
from windtunnel.driver.kernels.native_kernel import NativeKernel
from windtunnel.driver.media_driver import precompile

DRIVER = Path(precompile.__file__).parents[1]
PACKAGES = ("media_driver", "media", "cnc", "logbuffer")
"""The packages whose Python runs in the conductor."""
COMPILED_AT_START = {
    "windtunnel.driver.base.idle.after_turn",
    "windtunnel.driver.cnc.ring_buffer_reader.read",
    "windtunnel.driver.media.transport.receive",
    "windtunnel.driver.media.transport.send_frame",
    "windtunnel.driver.media.transport.slot_length",
    "windtunnel.driver.media.transport.source_length",
    "windtunnel.driver.media_driver.conductor.conductor_state.run",
    "windtunnel.driver.media_driver.conductor.conductor_state.track",
    "windtunnel.driver.media_driver.agent.duty_cycle.measure",
    "windtunnel.driver.media_driver.receiver.receiver.do_work",
    "windtunnel.driver.media_driver.receiver.receiver.run",
    "windtunnel.driver.media_driver.sender.sender.do_work",
    "windtunnel.driver.media_driver.sender.sender.run",
    "windtunnel.driver.media_driver.conductor.shared_agents.run_all",
    "windtunnel.driver.media_driver.conductor.shared_agents.run_network",
}
"""Compiled when a driver or its resolver's socket is made; what `invoke` calls, by its caller."""
CALLED_BY_CLIENTS = {
    "windtunnel.driver.cnc.broadcast.latest_position",
    "windtunnel.driver.logbuffer.descriptor.raw_tail_acquire",
    "windtunnel.driver.logbuffer.descriptor.session_id",
    "windtunnel.driver.logbuffer.descriptor.stream_id",
    "windtunnel.driver.logbuffer.descriptor.tail_offset",
    "windtunnel.driver.logbuffer.descriptor.tail_term_id",
    "windtunnel.driver.logbuffer.position.index_of_count",
    "windtunnel.driver.logbuffer.position.max_message_length",
}
"""Called by `appender.attach` and `broadcast.make_receiver`, which no driver calls."""

FIRST_STREAMS = """
import sys, threading, time
from pathlib import Path
from windtunnel.driver.kernels.native_kernel import NativeKernel

read = []
prepare = NativeKernel.prepare

def recording_prepare(kernel, arguments):
    known = len(kernel.signatures)
    entry = prepare(kernel, arguments)
    if len(kernel.signatures) > known:
        read.append((threading.current_thread().name, kernel.py_func.__name__))
    return entry

NativeKernel.prepare = recording_prepare
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.context import ClientContext
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.media_driver import MediaDriver

MODE, FOLDER = sys.argv[1:]
PATIENCE_S = 600
# Compiling takes long if other tests compile too; the timeouts allow for it.
context = Context(dir=Path(FOLDER), threading_mode=MODE, term_buffer_length=65_536,
                  publication_linger_timeout_ns=1_000_000,
                  client_liveness_timeout_ns=PATIENCE_S * 10**9,
                  publication_unblock_timeout_ns=2 * PATIENCE_S * 10**9)
client = ClientContext(dir=context.dir, driver_timeout_ms=PATIENCE_S * 1_000)
deadline_s = time.monotonic() + PATIENCE_S

def until(condition):
    while not condition():
        if driver.failure or aeron.is_closed or time.monotonic() > deadline_s:
            raise SystemExit(f"driver: {driver.failure}; client: {aeron.failure}")
        time.sleep(0.001)

with MediaDriver(context) as driver, Aeron(context=client) as aeron:
    for channel in ("aeron:udp?endpoint=127.0.0.1:0", "aeron:ipc"):
        subscription = aeron.add_subscription(channel, 1)
        until(subscription.try_resolve_channel_endpoint_port)
        resolved = subscription.try_resolve_channel_endpoint_port()
        publication = aeron.add_exclusive_publication(resolved, 1)
        until(lambda: subscription.images and publication.offer(b"word") > 0)
        image = subscription.images[0]
        until(lambda: image.poll(lambda payload, header: None))
        publication.close()
        until(lambda: image.is_end_of_stream)
    until(lambda: not any((context.dir / "publications").iterdir()))
agents = [name for thread, name in read if thread.startswith(("windtunnel-shared",
          "windtunnel-conductor", "windtunnel-sender", "windtunnel-receiver"))]
print("read", len(read), "compiled", "numba" in sys.modules, "by agents", *agents)
"""


def full_name(kernel):
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"


def called_from_python(path):
    """The kernels that functions of a file name which are not kernels themselves."""
    module = importlib.import_module(
        ".".join(("windtunnel", *path.relative_to(DRIVER.parent).with_suffix("").parts))
    )
    pending, found = [ast.parse(path.read_text())], set()
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
            if {"kernel", "jit.kernel", "inlined_kernel"}.intersection(decorators):
                continue
            pending.append(node)
            named = None
            if isinstance(node, ast.Name):
                named = getattr(module, node.id, None)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                named = getattr(getattr(module, node.value.id, None), node.attr, None)
            if isinstance(named, NativeKernel):
                found.add(full_name(named))
    return found


@pytest.mark.skipif(jit.JIT_DISABLED, reason="without machine code no function is a kernel")
def test_every_kernel_called_from_python_is_precompiled():
    files = [DRIVER / "base" / "clock.py"]
    files += [file for package in PACKAGES for file in (DRIVER / package).rglob("*.py")]
    called = set().union(*(called_from_python(file) for file in files if file.stem != "at_hand"))
    precompiled = {full_name(each) for _, kernels in precompile.CALLS for each in kernels}
    assert len(precompiled) > 90
    assert called - precompiled == COMPILED_AT_START | CALLED_BY_CLIENTS
    assert precompiled - called == set()


def first_streams(folder, mode):
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_STREAMS, mode, str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    counted, by_agents = ran.stdout.split(" by agents")
    _, count, _, has_compiled = counted.split()
    return int(count), has_compiled == "True", by_agents.split()


@pytest.mark.full(keep=1)
@pytest.mark.timeout(1300)
@pytest.mark.skipif(jit.JIT_DISABLED, reason="without machine code there is none to read")
@pytest.mark.parametrize("mode", ["SHARED", "DEDICATED"])
def test_the_first_streams_load_no_kernels(tmp_path, mode):
    count, has_compiled, by_agents = first_streams(tmp_path / "first", mode)
    if has_compiled:
        # A kernel was not stored yet. The claim is about a driver that finds all of them.
        count, _, by_agents = first_streams(tmp_path / "second", mode)
    assert count > sum(len(kernels) for _, kernels in precompile.CALLS)
    assert by_agents == []


ONE_DRIVER = """
import sys
from pathlib import Path
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.driver.client import Aeron
with MediaDriver(Context(dir=Path(sys.argv[1]), term_buffer_length=65_536)):
    pass
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numba", "llvmlite", "scapy"}))
"""


@pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled without the JIT")
def test_a_driver_whose_kernels_are_stored_imports_no_compiler(tmp_path):
    outputs = [
        subprocess.run(
            [sys.executable, "-c", ONE_DRIVER, str(tmp_path / name)],
            capture_output=True, text=True, check=True,
        ).stdout
        for name in ("first", "second")
    ]  # fmt: skip
    assert outputs[1] == "\n"
