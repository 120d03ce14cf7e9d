"""The page of a calibration needs no other file, and escapes all text."""

from windtunnel.harness.artifact.run.calibration import Calibration, Measure
from windtunnel.reports.measurements.calibration_page import figure, write_calibration_page

HELD = Measure("delay", "p50", "ms", 5.0, 5.1, 5.0, 5.2, 100, "within 0.3 ms")
MISSED = Measure("loss <b>", "rate", "%", 2.0, 3.0, 2.9, 3.1, 100, "within 5%", holds=False)
REPORTED = Measure("baseline", "transit", "ms", None, 0.1, 0.1, 0.2, 100)


def test_shows_every_measure_and_missed_tolerances(tmp_path):
    found = Calibration("relay", "6.1", 1000, 7, 1, [HELD, MISSED, REPORTED], ["rate: </script>"])
    page = write_calibration_page(found, tmp_path).read_text()
    body = page[page.index("<body>") :]
    assert "1 outside tolerance, 1 invalid" in body
    assert "loss &lt;b&gt;" in body
    assert body.count("</script>") == 1
    assert "missed" in body
    assert "src=" not in body


def test_draws_ratios_to_the_configured_values():
    drawn = figure(Calibration("relay", "6.1", 1000, 7, 1, [HELD, MISSED, REPORTED]))
    (points,) = drawn["data"]
    assert points["x"] == [5.1 / 5.0, 1.5]
    assert points["marker"]["color"][0] != points["marker"]["color"][1]
