"""The wheels `windtunnel` and `windtunnel-kernels`, and an environment that has both."""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD_TIMEOUT_S = 1500
INSTALL_TIMEOUT_S = 300


def build() -> None:
    """Build both wheels into build/wheels, for this Python and this processor."""
    subprocess.run([str(ROOT / ".ci" / "wheel.sh")], check=True, timeout=BUILD_TIMEOUT_S)


def install(home: Path) -> Path:
    """Make an environment in `home`, and return its folder of programs.

    Nothing is downloaded: the environment finds our dependencies in the one that runs the tests.
    """
    wheels = sorted((ROOT / "build" / "wheels").glob("*.whl"))
    assert len(wheels) == 2, wheels
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install",
         "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", *map(str, wheels)],
        check=True, timeout=INSTALL_TIMEOUT_S,
    )  # fmt: skip
    return home / "bin"
