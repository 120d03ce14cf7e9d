"""The page of a benchmark shows each figure, whether it is better, and the latencies."""

import pytest

from windtunnel.reports.measurements.bench_page import (
    advantage,
    bench_page,
    curve,
    write_bench_page,
)


def figure(name, ratio, better="more", *, floor=None, holds=None):
    spread = {"median": 2.0, "min": 1.0, "max": 3.0}
    return {
        **{"name": name, "case": name, "unit": "us", "peer": "c", "better": better},
        **{"ours": spread, "c": None if ratio is None else spread, "ratio": ratio},
        **{"floor": floor, "holds": holds},
    }


def round_trips(driver, values, void=""):
    return {"driver": driver, "case": "rtt-ipc", "values": values, "void": void}


def document(figures=(), readings=()):
    return {
        "machine": {"processor": "P", "cores": 2, "kernel": "6", "warning": "busy <machine>"},
        "settings": {
            **{"rounds": 3, "seconds": 2.0, "threading_mode": "DEDICATED"},
            **{"window": "2m", "term_length": "16m"},
        },
        "drivers": {"ours": "windtunnel-driver", "c": "Aeron C driver"},
        "figures": list(figures),
        "readings": list(readings),
    }


READINGS = [
    round_trips("ours", {"p50": 4.0, "p9.5": 1.0, "max": 90.0, "rss": 7.0}),
    round_trips("ours", {"p50": 6.0, "p9.5": 3.0, "max": 10.0, "rss": 7.0}),
    round_trips("ours", {"p50": 5.0, "p9.5": 9.0, "max": 80.0, "rss": 7.0}),
    round_trips("c", {}, void="the driver </script> exited"),
    round_trips("c", {"p50": 9.0, "p9.5": 2.0, "max": 95.0, "rss": 7.0}),
    round_trips("c", {"p50": 8.0, "p9.5": 1.0, "max": 95.0, "rss": 7.0}),
]


@pytest.mark.parametrize(
    ("ratio", "better", "times"), [(4.0, "more", 4.0), (0.25, "less", 4.0), (None, "more", None)]
)
def test_a_lower_figure_is_an_advantage_where_less_is_better(ratio, better, times):
    assert advantage(figure("f", ratio, better)) == times


def test_latencies_are_medians_of_the_valid_rounds():
    made = document(readings=READINGS)
    assert curve(made, "rtt-ipc", "ours") == ([9.5, 50.0], [3.0, 5.0])
    assert curve(made, "rtt-ipc", "c") == ([9.5, 50.0], [1.5, 8.5])


def test_shows_all_figures_and_void_readings(tmp_path):
    figures = [
        figure("udp-32", 4.0, floor=1.0, holds=True),
        figure("rtt-ipc", 1.5, "less", floor=1.0, holds=False),
        figure("swarm", None),
    ]
    file = tmp_path / "bench.html"
    write_bench_page(document(figures, READINGS), file)
    page = file.read_text()
    body = page[page.index("<body>") :]
    assert "busy &lt;machine&gt;" in body
    assert "at least 1</span>" in body
    assert "at most 1, missed" in body
    assert "void: rtt-ipc of c: the driver &lt;/script&gt; exited" in body
    assert body.count("</script>") == 1
    assert "src=" not in body
    assert '"y": ["udp-32", "rtt-ipc"]' in body
    assert '"text": ["4.00", "0.67"]' in body
    assert "rtt-ipc: latency of round trips" in body


def test_a_benchmark_of_one_driver_has_no_bars():
    page = bench_page(document([figure("swarm", None)]))
    assert "const drawings = {};" in page
    assert "swarm" in page
