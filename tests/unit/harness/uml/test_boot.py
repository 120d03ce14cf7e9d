"""Supervision of a kernel's start and end, with a program in its place that obeys or does not."""

import os
import stat
import sys
from pathlib import Path

import pytest

from windtunnel.harness.uml import boot, kernel
from windtunnel.harness.uml.boot import BootError, Command
from windtunnel.harness.uml.boot_request import BootRequest, Exit
from windtunnel.harness.uml.kernel import Kernel, NoKernel

STAND_IN = """\
#!{python}
import json, os, subprocess, sys
given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
folder = given["uml_dir"]
order = json.load(open(folder + "/request.json"))
out, err = (int(given[name].rpartition(":")[2]) for name in ("con1", "con2"))
"""
OBEYS = """
os.write(err, b"up\\n")
code = subprocess.run(order["argv"], stdout=out, stderr=err, env=order["environment"]).returncode
json.dump({"code": code, "problem": ""}, open(folder + "/exit.json", "w"))
"""


def stand_in(folder: Path, text: str) -> Kernel:
    program = folder / "linux.uml"
    program.write_text(STAND_IN.format(python=sys.executable) + text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Kernel(program, "1.2.3", folder)


@pytest.fixture(autouse=True)
def _leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(boot.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    yield
    assert list((tmp_path / "temporary").iterdir()) == []


def test_exit_code_and_both_outputs_are_returned(tmp_path, capfdbinary):
    argv = ["sh", "-c", "echo to out; echo to err >&2; exit 7"]
    assert boot.run(stand_in(tmp_path, OBEYS), Command(argv, 20.0)) == 7
    reported = capfdbinary.readouterr()
    assert reported.out == b"to out\n"
    assert reported.err == b"to err\n"


def test_the_command_has_a_variable_that_names_the_kernel(tmp_path, capfdbinary):
    argv = ["sh", "-c", f"echo ${boot.INSIDE_VARIABLE}"]
    boot.run(stand_in(tmp_path, OBEYS), Command(argv, 20.0))
    assert capfdbinary.readouterr().out == b"uml\n"


def test_a_disk_and_modules_are_available_on_request(tmp_path, capfdbinary):
    text = """
disk = given["ubd0"]
os.write(out, f"{os.path.getsize(disk)} {os.stat(disk).st_blocks} {order['modules'][-1]}".encode())
"""
    command = Command(["true"], 20.0, disk_bytes=1 << 30, modules=["overlay"])
    assert boot.run(stand_in(tmp_path, text + OBEYS), command) == 0
    assert capfdbinary.readouterr().out == b"1073741824 0 overlay"


def test_without_a_disk_there_is_no_argument_for_it(tmp_path, capfdbinary):
    text = 'os.write(out, str("ubd0" in given).encode())\n'
    assert boot.run(stand_in(tmp_path, text + OBEYS), Command(["true"], 20.0)) == 0
    assert capfdbinary.readouterr().out == b"False"


def test_a_kernel_that_ends_by_itself_is_quoted(tmp_path):
    text = 'print("reboot: Restarting system", flush=True)\n'
    with pytest.raises(BootError, match=r"ended unexpectedly\n(.*\n)*reboot: Restarting"):
        boot.run(stand_in(tmp_path, text), Command(["true"], 20.0))


def test_a_kernel_that_aborts_ends_the_boot(tmp_path):
    # User Mode Linux aborts like this after a panic. It would not end as the first process.
    text = """
import signal
print("Kernel panic - not syncing: no init", *range(100), sep="\\n", flush=True)
while True:
    os.kill(os.getpid(), signal.SIGABRT)
"""
    with pytest.raises(BootError, match=r"unexpectedly: Kernel panic - not syncing: no init\n"):
        boot.run(stand_in(tmp_path, text), Command(["true"], 20.0))


def test_what_the_first_process_reports_is_quoted(tmp_path):
    text = 'json.dump({"code": None, "problem": "no veth"}, open(folder + "/exit.json", "w"))\n'
    with pytest.raises(BootError, match="no veth"):
        boot.run(stand_in(tmp_path, text), Command(["true"], 20.0))


def test_a_command_that_does_not_end_is_ended(tmp_path):
    with pytest.raises(BootError, match=r"did not end within 1 s"):
        boot.run(stand_in(tmp_path, OBEYS), Command(["sleep", "60"], 1.0))


def test_a_kernel_that_does_not_boot_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(boot, "BOOT_TIMEOUT_S", 0.5)
    with pytest.raises(BootError, match=r"was not up after 0\.5 s"):
        boot.run(stand_in(tmp_path, "import time; time.sleep(60)\n"), Command(["true"], 20.0))


def test_folders_of_ended_kernels_are_removed_and_of_running_ones_kept(tmp_path):
    temporary = tmp_path / "temporary"
    dead, living = (temporary / f"{boot.FOLDER_PREFIX}{name}" for name in ("dead", "living"))
    for folder in (dead, living):
        folder.mkdir()
    boot._claim(dead).close()
    with boot._claim(living):
        assert boot.remove_leftovers() == [f"folder {dead}"]
    assert boot.remove_leftovers() == [f"folder {living}"]


def test_a_folder_that_another_user_planted_does_not_stop_the_others(tmp_path):
    temporary = tmp_path / "temporary"
    dead, linked, theirs = (temporary / f"{boot.FOLDER_PREFIX}{each}" for each in ("z", "a", "b"))
    precious = tmp_path / "precious"
    for folder in (dead, precious, theirs):
        folder.mkdir()
        boot._claim(folder).close()
    linked.symlink_to(precious)
    expected = [f"folder {dead}"]
    if os.geteuid() == 0:
        os.chown(theirs, 12345, 12345)
    else:
        expected.insert(0, f"folder {theirs}")
    assert boot.remove_leftovers() == expected
    assert (precious / boot.CLAIM_FILE).exists()
    linked.unlink()
    boot.shutil.rmtree(theirs, ignore_errors=True)


def test_a_folder_that_cannot_be_removed_does_not_stop_the_others(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    stuck, dead = (temporary / f"{boot.FOLDER_PREFIX}{each}" for each in ("a", "b"))
    remove = boot.shutil.rmtree
    for folder in (stuck, dead):
        folder.mkdir()
        boot._claim(folder).close()

    def refuse(folder):
        if folder == stuck:
            raise OSError("busy")
        remove(folder)

    monkeypatch.setattr(boot.shutil, "rmtree", refuse)
    with pytest.raises(BootError, match=f"folder {stuck}: busy"):
        boot.remove_leftovers()
    assert not dead.exists()
    remove(stuck)


def test_without_the_program_there_is_no_kernel(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoKernel, match=f"apt-get install {kernel.PACKAGE}"):
        kernel.find()


def test_a_program_without_modules_is_not_a_kernel(monkeypatch, tmp_path):
    program = tmp_path / kernel.PROGRAM
    program.write_text("#!/bin/sh\necho 9.9.9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoKernel, match="has no modules for it"):
        kernel.find()


@pytest.mark.parametrize(
    ("release", "flags", "reason"),
    [
        ("6.1.176", "fpu amx_bf16 amx_tile amx_int8", "cannot run on a processor with AMX"),
        ("6.13.1", "fpu amx_bf16 amx_tile amx_int8", "has no modules for it"),
        ("6.1.176", "fpu avx512f", "has no modules for it"),
    ],
)
def test_a_kernel_without_space_for_the_registers_cannot_be_used(
    monkeypatch, tmp_path, release, flags, reason
):
    program, processors = tmp_path / kernel.PROGRAM, tmp_path / "cpuinfo"
    program.write_text(f"#!/bin/sh\necho {release}\n")
    program.chmod(0o755)
    processors.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kernel, "PROCESSORS", processors)
    monkeypatch.setattr(kernel, "MODULES_ROOT", tmp_path / "modules")
    with pytest.raises(NoKernel, match=reason):
        kernel.find()


def test_modules_are_looked_up_by_name(tmp_path):
    (tmp_path / "modules.dep").write_text("kernel/net/sched/sch_netem.ko:\n")
    found = Kernel(tmp_path, "1", tmp_path)
    assert kernel.has_module(found, "sch_netem")
    assert not kernel.has_module(found, "netem")


def test_a_boot_request_and_its_exit_are_read_back_as_written(tmp_path):
    order = BootRequest(["a", "b"], "/", {"X": "1"}, "/modules", ["veth"])
    order.write(tmp_path)
    assert BootRequest.read(tmp_path) == order
    assert Exit.read(tmp_path) is None
    Exit(3).write(tmp_path)
    assert Exit.read(tmp_path) == Exit(3)
    (tmp_path / "exit.json").write_text('{"code"')
    assert Exit.read(tmp_path) is None
    assert os.listdir(tmp_path)
