"""The API that a program uses: publications to write to, subscriptions to read from, over a media
driver's files.

    from driver.client import Aeron

    with Aeron(directory) as aeron:
        publication = aeron.add_publication("aeron:udp?endpoint=localhost:20121", 1001)
        publication.offer(b"hello")

A client meets its driver only in shared memory: commands go into a ring, answers come from a
broadcast, messages lie in log buffers that both map. An unmodified driver of Aeron serves it as
well as ours.
"""

from driver.client.aeron import Aeron
from driver.client.assembler import (
    ControlledFragmentAssembler,
    FragmentAssembler,
    ImageControlledFragmentAssembler,
    ImageFragmentAssembler,
)
from driver.client.asynchronous import AsyncPublication, AsyncSubscription, ReceivedMessage
from driver.client.claim import Claim
from driver.client.context import ClientContext, from_environment
from driver.client.counter import Counter
from driver.client.errors import (
    BroadcastLappedError,
    ChannelEndpointError,
    ClientError,
    ClientTerminatedError,
    ClientTimeoutError,
    ClosedError,
    CommandTimeoutError,
    ConductorServiceTimeoutError,
    DriverBufferFullError,
    DriverTimeoutError,
    MaxPositionExceededError,
    ReentrantCallError,
    RegistrationError,
)
from driver.client.exclusive_publication import ExclusivePublication
from driver.client.fragment_batch import FragmentBatch
from driver.client.header import Action, Header
from driver.client.image import Image
from driver.client.publication import Publication
from driver.client.subscription import Subscription

__all__ = [
    "Action",
    "Aeron",
    "AsyncPublication",
    "AsyncSubscription",
    "BroadcastLappedError",
    "ChannelEndpointError",
    "Claim",
    "ClientContext",
    "ClientError",
    "ClientTerminatedError",
    "ClientTimeoutError",
    "ClosedError",
    "CommandTimeoutError",
    "ConductorServiceTimeoutError",
    "ControlledFragmentAssembler",
    "Counter",
    "DriverBufferFullError",
    "DriverTimeoutError",
    "ExclusivePublication",
    "FragmentAssembler",
    "FragmentBatch",
    "Header",
    "Image",
    "ImageControlledFragmentAssembler",
    "ImageFragmentAssembler",
    "MaxPositionExceededError",
    "Publication",
    "ReceivedMessage",
    "ReentrantCallError",
    "RegistrationError",
    "Subscription",
    "from_environment",
]
