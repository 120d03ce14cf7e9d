"""Links spies, which read a network publication in shared memory, to the publications they match.

The sender counts the spies of a publication if they simulate a connection. Source: spec 4.11, Aeron
1.53.
"""

from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources
from windtunnel.driver.media_driver.conductor.images.subscriptions import (
    Subscription,
    SubscriptionLinks,
)
from windtunnel.driver.media_driver.conductor.publications.network_publication import (
    NetworkPublication,
)
from windtunnel.driver.media_driver.conductor.publications.publication_log import State
from windtunnel.driver.media_driver.sender import network_publication as sending


class PublicationSpies:
    """The spies of all network publications in this driver."""

    def __init__(
        self,
        resources: DriverResources,
        links: SubscriptionLinks,
        publications: list[NetworkPublication],
    ) -> None:
        self._resources, self._links, self._publications = resources, links, publications

    def join(self, spy: Subscription) -> None:
        """Link a new spy to the existing network publications that match it."""
        for publication in self._publications:
            if self._accepts_spies(publication):
                self._link(spy, publication)

    def announce(self, publication: NetworkPublication) -> None:
        """Link a network publication to the existing spies that match it."""
        for subscription in list(self._links.all()):
            self._link(subscription, publication)

    def _link(self, spy: Subscription, publication: NetworkPublication) -> None:
        is_new = _is_spied_by(publication, spy) and not spy.is_linked(publication)
        if is_new and self._links.try_link(spy, publication):
            self.refresh(publication)

    def _accepts_spies(self, publication: NetworkPublication) -> bool:
        if publication.state is State.DRAINING:
            _, _, count = self._resources.positions.bounds(
                publication.record, self._resources.values
            )
            return count > 0 and publication.producer_position() > publication.sender_position()
        return publication.state is State.ACTIVE

    def refresh(self, publication: NetworkPublication) -> None:
        """Inform the sender whether a publication has spies, and update its connection status."""
        _, highest, count = self._resources.positions.bounds(
            publication.record, self._resources.values
        )
        words = self._resources.sender.words
        sending.set_spies_release(words, publication.slot, int(count > 0), highest)
        if publication.parameters.spies_simulate_connection:
            publication.set_connected(self._has_subscribers(publication, count))

    def _has_subscribers(self, publication: NetworkPublication, spies: int) -> bool:
        words = self._resources.sender.words
        is_simulated = publication.parameters.spies_simulate_connection and spies > 0
        return is_simulated or bool(sending.has_required_receivers_acquire(words, publication.slot))


def _is_spied_by(publication: NetworkPublication, spy: Subscription) -> bool:
    """Return whether a spy subscription matches a publication by tag, or by canonical form and
    session.
    """
    spied = spy.spied_channel
    if spied is None or spy.stream_id != publication.stream_id:
        return False
    channel = publication.endpoint.channel
    if spied.channel_tag is not None and spied.channel_tag == channel.channel_tag:
        return True
    is_same = spied.canonical_form == channel.canonical_form
    return is_same and spy.accepts_session(publication.session_id)
