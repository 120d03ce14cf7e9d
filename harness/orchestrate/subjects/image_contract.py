"""The contract of container images whose driver is a peer. docs/peer-images.md states it for users.

    image:example/aeronmd:1.49 --labels--> kind of driver     variables --> container --> cnc.dat

An image that cannot be used on this machine is a reason, not an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from windtunnel.harness.artifact.run.manifest import AERON_C, KINDS
from windtunnel.harness.orchestrate.applications.application_process import LOG_BYTES_MAX
from windtunnel.harness.orchestrate.fidelity import COMPOSE
from windtunnel.harness.orchestrate.lab import ApplicationRequest, LabError
from windtunnel.harness.orchestrate.labs import containers
from windtunnel.harness.scenario.applications.application import IMAGE_LENGTH_MAX, IMAGE_PATTERN

PREFIX = "image:"
VERSION = "1"
"""Version of the contract. An image that does not know it ends with exit code 127."""
UNKNOWN_VERSION = "0"
VERSION_VARIABLE = "WINDTUNNEL_CONTRACT"
SCENARIO_VARIABLE = "WINDTUNNEL_SCENARIO"
LABEL = "windtunnel.driver"
"""Label of an image that says which driver it contains."""


def image_of(name: str) -> str:
    """Return the image that a peer name such as `image:example/aeronmd:1.49` stands for, or an
    empty string if it is not the name of an image. The prefix may be omitted.
    """
    image = name.removeprefix(PREFIX)
    is_valid = len(image) <= IMAGE_LENGTH_MAX and re.fullmatch(IMAGE_PATTERN, image) is not None
    return image if is_valid else ""


def kind_of(image: str, fidelity: str) -> tuple[str, str]:
    """Return which driver an image contains, and the reason why this machine cannot use the image,
    or an empty string if it can.
    """
    if fidelity != COMPOSE:
        return AERON_C, "an image runs in a container: use --fidelity compose"
    if containers.is_inside():
        return AERON_C, "an image needs a container engine: run outside the containers"
    from windtunnel.harness.orchestrate.labs import application_container, engine

    try:
        labels = engine.labels_of_image(image)
    except LabError as error:
        return AERON_C, str(error)
    if labels is None:
        return AERON_C, application_container.absent_text(image)
    kind = labels.get(LABEL, AERON_C)
    if kind not in KINDS:
        expected = f"expected one of {', '.join(KINDS)} as its label {LABEL}"
        return AERON_C, f"{expected}, found {kind[:80]!r}"
    return kind, ""


def driver_request(
    image: str, env: Mapping[str, str], log: Path, log_bytes_max: int = LOG_BYTES_MAX
) -> ApplicationRequest:
    """Return the request to start the driver of an image. It sees no folder of this machine."""
    return ApplicationRequest(
        image=image, command=(), env=env, log=log, log_bytes_max=log_bytes_max
    )


def variables(scenario: str, version: str = VERSION) -> Mapping[str, str]:
    """Return the variables of the contract. Aeron's settings are added to them."""
    return {VERSION_VARIABLE: version, SCENARIO_VARIABLE: scenario}
