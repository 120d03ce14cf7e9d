"""Sets up one stream of a swarm trial: passes its publication and image to the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass

from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.cnc import counters
from windtunnel.driver.logbuffer import appender
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.media_driver.conductor.stream_counters import (
    RECEIVER_HWM,
    RECEIVER_POSITION,
    SENDER_POSITION,
)
from windtunnel.harness.dissect.driver_files.expected_log import ExpectedLog
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.simulator.audit.stream_record import Audit
from windtunnel.harness.simulator.world.host import Host


@dataclass
class Stream:
    """A stream of a trial, with its two hosts and its expected log."""

    index: int
    traffic: TrafficCase
    near: Host
    far: Host
    log: ExpectedLog
    subscription_id: int
    publication_id: int
    publication: Publication | None = None
    image: Image | None = None
    mapped: tuple[LogBuffer, ...] = ()

    def find_publication(self) -> Publication | None:
        """Return the stream's publication, or None until the driver has created it."""
        if self.publication is None:
            client = self.near.client
            if self.traffic.publication == "exclusive":
                self.publication = client.get_exclusive_publication(self.publication_id)
            else:
                self.publication = client.get_publication(self.publication_id)
        return self.publication

    def find_image(self) -> Image | None:
        """Return the stream's image, or None until publication and subscription are connected.

        Images that corrupted frames created are ignored.
        """
        if self.image is None and self.publication is not None and self.publication.is_connected:
            subscription = self.far.client.get_subscription(self.subscription_id)
            for each in subscription.images if subscription is not None else ():
                if each.session_id == self.publication.session_id:
                    self.image = each
        return self.image

    def attach(self, audit: Audit) -> None:
        """Pass a connected stream to the compiled kernels that publish and read it."""
        publication, image = self.publication, self.image
        assert publication is not None
        assert image is not None
        near, far = self.near.directory, self.far.directory
        logs = (
            near / "publications" / f"{publication.original_registration_id}.logbuffer",
            far / "images" / f"{image.correlation_id}.logbuffer",
        )
        self.mapped = tuple(LogBuffer.map(path) for path in logs)
        record = audit.streams[self.index]
        own, other = self.mapped
        record["log_address"], record["log_length"] = own.address, own.length
        record["image_address"], record["image_length"] = other.address, other.length
        audit.appenders[self.index] = appender.attach(own.log, own.meta_at)[0]
        record["limit_at"] = publication.position_limit_id * counters.COUNTER_LENGTH
        record["sub_pos_id"] = image.subscriber_position_id
        counter = self.near.client.counters.find
        other_counter = self.far.client.counters.find
        record["snd_pos_id"] = counter(SENDER_POSITION, publication.original_registration_id)
        record["hwm_id"] = other_counter(RECEIVER_HWM, image.correlation_id)
        record["rcv_pos_id"] = other_counter(RECEIVER_POSITION, image.correlation_id)
        record["is_flowing"] = 1
