"""Reference implementation of the destination table: a list of dicts."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Place:
    """One destination; an address is (host, port) or None. Two with equal values are two."""

    registration: int
    address: tuple[str, int] | None
    last_status: int
    receiver: int | None = None
    accepted: int | None = None


@dataclass
class Destinations:
    """The destinations of one channel."""

    is_dynamic: bool
    timeout: int
    places_max: int = 256
    places_of_host_max: int = 64
    places: list[Place] = field(default_factory=list)

    def find(self, receiver: int, address: tuple[str, int]) -> Place | None:
        for place in self.places:
            is_known_by_address = place.receiver is None or place.registration == -1
            if is_known_by_address and place.address == address:
                return place
            if place.receiver == receiver and place.address and place.address[1] == address[1]:
                return place
        return None

    def on_status(
        self, receiver: int, address: tuple[str, int], now: int, is_accepted: bool = False
    ) -> None:
        place = self.find(receiver, address)
        if place is None and self.is_dynamic:
            place = self._make_place(address, now)
        if place is not None:
            place.receiver, place.last_status = receiver, now
            place.accepted = now if is_accepted else place.accepted

    def _make_place(self, address: tuple[str, int], now: int) -> Place | None:
        """Append a place, or overwrite the unproven one whose last status message is the oldest."""
        of_host = [p for p in self.places if p.address and p.address[0] == address[0]]
        is_host_full = len(of_host) >= self.places_of_host_max
        new = Place(-1, address, now)
        if not is_host_full and len(self.places) < self.places_max:
            self.places.append(new)
            return new
        unproven = [
            p
            for p in (of_host if is_host_full else self.places)
            if p.accepted is None or now - p.accepted > self.timeout
        ]
        if not unproven:
            return None
        self.places[self.places.index(min(unproven, key=lambda p: p.last_status))] = new
        return new

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
        while silent := [p for p in self.places if now > p.last_status + self.timeout]:
            self._take(silent[0])

    def take_silent(self, now: int) -> list[int]:
        silent = [p for p in self.places if now > p.last_status + self.timeout]
        for place in silent:
            place.last_status = now
        return [place.registration for place in silent]
