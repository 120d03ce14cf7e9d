"""The client API, with publications that write to streams and subscriptions that read them.

    from windtunnel.driver.client import Aeron

    with Aeron(directory) as aeron:
        publication = aeron.add_publication("aeron:udp?endpoint=localhost:20121", 1001)
        publication.offer(b"hello")

Client and media driver communicate only through shared memory: commands are written to a ring
buffer, responses are read from a broadcast buffer, and messages are exchanged in log buffers that
both processes map. The client also works with an unmodified Aeron driver.
"""

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.asynchronous import (
    AsyncPublication,
    AsyncSubscription,
    ReceivedMessage,
)
from windtunnel.driver.client.context import ClientContext, from_environment
from windtunnel.driver.client.counter import Counter
from windtunnel.driver.client.errors import (
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
from windtunnel.driver.client.image.assembler import (
    ControlledFragmentAssembler,
    FragmentAssembler,
    ImageControlledFragmentAssembler,
    ImageFragmentAssembler,
)
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.image.header import Action, Header
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.block_claim import BlockClaim
from windtunnel.driver.client.publication.claim import Claim
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription

__all__ = [
    "Action",
    "Aeron",
    "AsyncPublication",
    "AsyncSubscription",
    "BlockClaim",
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
