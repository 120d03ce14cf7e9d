"""Which packages are built: the folders of the top level, each as a package below `windtunnel`.

    driver/  harness/  reports/  scenarios/   ->   windtunnel.driver  windtunnel.harness  ...

Everything else about the build is in pyproject.toml, which cannot map one name to several folders.
"""

from setuptools import find_namespace_packages, setup

FOLDERS = ("driver", "harness", "reports", "scenarios")
PREFIX = "windtunnel."

setup(
    package_dir={PREFIX + folder: folder for folder in FOLDERS},
    packages=[
        PREFIX + name
        for folder in FOLDERS
        for name in (folder, *(f"{folder}.{each}" for each in find_namespace_packages(folder)))
        if "__pycache__" not in name
    ],
)
