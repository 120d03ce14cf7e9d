"""Weather that is well-formed but cannot be delivered as it stands."""

from collections.abc import Iterator

from windtunnel.harness.scenario.schema.impairment import Weather
from windtunnel.harness.scenario.schema.network import Link
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import BILLION, format_duration
from windtunnel.harness.scenario.validation.loss_model_validation import chance_problems

PACKET_BITS = 8 * 1_500
"""Of a full packet: what a queue is counted in."""

BOTH = "both"


def weather_problems(link: Link, at: Path) -> Iterator[Problem]:
    """All that cannot be in the weather of a link, at a place, whose tables are well-formed."""
    top: Path = (*at, "weather")
    first, second = link.between
    weather = link.weather
    known = (f"{first}->{second}", f"{second}->{first}", BOTH)
    for key, each in weather.items():
        if key not in known:
            yield Problem((*top, key), f"no link {key!r}: expected {', '.join(known)}")
        elif key == BOTH and len(weather) > 1:
            yield Problem((*top, key), "is not all: a direction has weather of its own")
        yield from _one(each, (*top, key))
    if link.backend == "netem" and not weather:
        text = "netem has nothing to deliver: expected weather, or backend relay"
        yield Problem((*at, "backend"), text)


def shared_problems(links: tuple[Link, ...]) -> Iterator[Problem]:
    """Netem on the way to a host befalls all that goes there, over whichever link it came."""
    for index, link in enumerate(links):
        if link.backend != "netem":
            continue
        for receiver, sender in (link.between, link.between[::-1]):
            others = [each for each in links if each is not link and receiver in each.between]
            if others and {f"{sender}->{receiver}", BOTH} & set(link.weather):
                text = (
                    f"netem cannot tell what goes to {receiver} over this link from what goes "
                    f"there over {len(others)} others: expected backend relay"
                )
                yield Problem(("network", "links", index, "backend"), text)
                break


def _one(weather: Weather, path: Path) -> Iterator[Problem]:
    if not weather.model_fields_set:
        yield Problem(path, "expected at least one of loss, delay, rate, duplicate, corrupt")
    yield from chance_problems(weather.loss, (*path, "loss"))
    delay = weather.delay
    if delay is not None and delay.jitter_ns > delay.mean_ns:
        text = f"expected at most the mean of {format_duration(delay.mean_ns)}"
        yield Problem((*path, "delay", "jitter"), f"{text}: nothing arrives before it was sent")
    if delay is not None and delay.jitter_ns == 0 and "distribution" in delay.model_fields_set:
        yield Problem((*path, "delay", "distribution"), "is of the jitter, and there is none")
    if weather.reorder is not None and delay is None:
        yield Problem((*path, "reorder"), "needs a delay: without one there is nobody to overtake")
    yield from _queue(weather, path)


def _queue(weather: Weather, path: Path) -> Iterator[Problem]:
    if weather.queue_packets is None:
        return
    if weather.rate_bits_per_s is None:
        yield Problem((*path, "queue"), "needs a rate: without one nothing has to wait")
        return
    held_ns = weather.delay.mean_ns + weather.delay.jitter_ns if weather.delay else 0
    least = 2 * weather.rate_bits_per_s * held_ns // (BILLION * PACKET_BITS)
    if weather.queue_packets < least:
        text = f"expected at least {least}, twice what the delay alone keeps on its way"
        yield Problem((*path, "queue"), f"{text}, found {weather.queue_packets}")
