"""Reference implementation of the destination table: a list of dicts."""

from dataclasses import dataclass, field


@dataclass
class Place:
    """One destination; an address is (host, port) or None."""

    registration: int
    address: tuple[str, int] | None
    heard: int
    receiver: int | None = None


@dataclass
class Destinations:
    """The destinations of one channel."""

    is_dynamic: bool
    timeout: int
    places: list[Place] = field(default_factory=list)

    def find(self, receiver: int, address: tuple[str, int]) -> Place | None:
        for place in self.places:
            if place.receiver is None:
                if place.address == address:
                    return place
            elif place.receiver == receiver and place.address and place.address[1] == address[1]:
                return place
        return None

    def hear(self, receiver: int, address: tuple[str, int], now: int) -> None:
        place = self.find(receiver, address)
        if place is None and self.is_dynamic:
            place = Place(-1, address, now)
            self.places.append(place)
        if place is not None:
            place.receiver, place.heard = receiver, now

    def add(self, registration: int, address: tuple[str, int] | None, now: int) -> None:
        self.places.append(Place(registration, address, now))

    def _take(self, place: Place | None) -> None:
        """Remove a destination; the last one takes its slot."""
        if place is not None:
            index, last = self.places.index(place), self.places.pop()
            if last is not place:
                self.places[index] = last

    def remove(self, address: tuple[str, int] | None) -> None:
        self._take(next((p for p in reversed(self.places) if p.address == address), None))

    def remove_by_id(self, registration: int) -> None:
        found = (p for p in reversed(self.places) if p.registration == registration)
        self._take(next(found, None))

    def change(self, registration: int, address: tuple[str, int]) -> None:
        for place in self.places:
            if place.registration == registration:
                place.address = address

    def expire(self, now: int) -> None:
        while silent := [p for p in self.places if now > p.heard + self.timeout]:
            self._take(silent[0])

    def take_silent(self, now: int) -> list[int]:
        silent = [p for p in self.places if now > p.heard + self.timeout]
        for place in silent:
            place.heard = now
        return [place.registration for place in silent]
