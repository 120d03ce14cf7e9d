"""The weather of a case in words, with what a loss model comes to in the long run."""

from collections.abc import Iterator

from windtunnel.harness.scenario.resolved.impairment_case import LossCase, WeatherCase
from windtunnel.harness.scenario.schema.units import format_duration, format_rate, format_share


def weather_lines(backend: str, weather: tuple[WeatherCase, ...]) -> Iterator[str]:
    """A heading and a line for each thing that befalls a direction."""
    if not weather:
        return
    yield ""
    yield f"weather, of every packet, delivered by {backend}"
    for each in weather:
        for text in _texts(each):
            yield f"  {each.link}  {text}"


def _texts(weather: WeatherCase) -> Iterator[str]:
    if weather.loss is not None:
        yield f"loss {_loss(weather.loss)}"
    if weather.duplicate_ppb:
        yield f"{format_share(weather.duplicate_ppb)} arrive twice"
    if weather.corrupt_ppb:
        yield f"{format_share(weather.corrupt_ppb)} have a bit flipped and are refused"
    if weather.delay_ns:
        jitter = ""
        if weather.jitter_ns:
            jitter = f" and {format_duration(weather.jitter_ns)}, {weather.distribution}"
        yield f"delay {format_duration(weather.delay_ns)}{jitter}"
    if weather.reorder_ppb:
        share = format_share(weather.reorder_ppb)
        yield f"{share} of every packet that is {weather.reorder_gap} after the last skip the delay"
    if weather.rate_bits_per_s:
        queue = f"{weather.queue_packets} packets" if weather.queue_packets else "boundless"
        yield f"rate {format_rate(weather.rate_bits_per_s)}, queue {queue}"


def _loss(loss: LossCase) -> str:
    shares = " ".join(format_share(share) for share in loss.shares_ppb)
    return (
        f"{loss.model} {shares}: {loss.rate:.3%} of the packets, "
        f"in bursts of {loss.burst_length:.2f} on average"
    )
