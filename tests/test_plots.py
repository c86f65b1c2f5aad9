"""Figures show what they were given: their numbers are read back from the figure itself."""

from datetime import date
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from meterveil import plots
from meterveil.bench.simulation import simulate
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.errors import InputError
from meterveil.plots.look import clock
from meterveil.plots.simulation import replays

LIBRARY = Library.of([("kettle", [2000.0, 2500.0, 400.0]), ("lamp", [60.0] * 8)], source="by hand")
DAY = date(2024, 4, 15)


def household(start="2024-04-15", gap=slice(0, 0)):
    minutes = pd.date_range(start, periods=2880, freq="min", tz="Europe/London", unit="s")
    aggregate_w, kettle_w = np.full(2880, 300.0), np.zeros(2880)
    kettle_w[500:503] = 2200.0
    aggregate_w[gap] = np.nan
    appliances = {"kettle": kettle_w, "chest_freezer": np.full(2880, np.nan)}
    return Household("here", minutes, aggregate_w, appliances, {"aggregate": "VA"})


@pytest.fixture(scope="module")
def run():
    return simulate(household(gap=slice(600, 700)), "random_equal", DAY, 1, Setup(LIBRARY, seed=1))


@pytest.fixture(scope="module")
def long_run():
    return simulate(household(), "flat", DAY, 2, Setup(LIBRARY))


def named(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_a_day_shows_load_and_meter_minute_by_minute(run):
    figure = plots.day_figure(run)
    (meter,) = named(figure, "meter after")
    assert np.allclose(np.asarray(meter.y, dtype=float), run.meter_w, atol=0.5, equal_nan=True)
    _, line = named(figure, "load before")
    assert np.isnan(np.asarray(line.y, dtype=float)).sum() == 100


def test_the_battery_is_drawn_in_the_colour_of_each_decoy(run):
    figure = plots.day_figure(run)
    (kettle,), (lamp,) = named(figure, "decoy: kettle"), named(figure, "decoy: lamp")
    assert len(kettle.x) == np.sum((run.decoy == 0) & (run.battery_w != 0))
    assert len(lamp.x) == np.sum((run.decoy == 1) & (run.battery_w != 0))
    assert kettle.marker.color != lamp.marker.color


def test_power_that_plays_no_appliance_is_said_to_hold_the_meter():
    uneven = household()
    uneven.aggregate_w[::7] = 900.0
    (held,) = named(plots.day_figure(simulate(uneven, "flat", DAY, 1, Setup(LIBRARY))), "holding the meter")
    assert len(held.x) > 1000


def test_a_gap_is_shaded_in_every_panel_and_named_once(run):
    shapes = [shape for shape in plots.day_figure(run).layout.shapes if shape.name]
    assert len(shapes) == 3
    assert [shape.showlegend for shape in shapes].count(True) == 1
    assert pd.Timestamp(shapes[0].x0) == pd.Timestamp("2024-04-15 10:00")
    assert pd.Timestamp(shapes[0].x1) == pd.Timestamp("2024-04-15 11:40")


def test_a_battery_without_a_budget_has_no_line_for_it():
    unlimited = Setup(LIBRARY, Battery(budget_kwh=float("inf")))
    figure = plots.day_figure(simulate(household(), "flat", DAY, 1, unlimited))
    assert not [trace for trace in figure.data if "budget" in (trace.name or "")]


def test_many_days_are_bars_of_energy_and_a_line_of_charge(long_run):
    moved, charge = plots.days_figure(long_run).data
    assert len(moved.y) == len(charge.y) == 2
    assert charge.y[-1] == pytest.approx(long_run.soc[-1] * 100)


def test_defences_are_compared_on_the_same_scale(run):
    figure = plots.comparison_figure([run, run])
    ranges = {tuple(figure.layout[axis].range) for axis in ("yaxis", "yaxis2")}
    assert len(ranges) == 1
    assert [trace.showlegend for trace in named(figure, "meter after")] == [True, False]


def test_the_hero_picture_names_decoys_where_they_ran(run):
    figure = plots.hero_figure(run)
    labels = [label.text for label in figure.layout.annotations]
    assert labels
    assert set(labels) <= {"decoy<br>lamp", "decoy<br>kettle"}
    times = {str(run.minutes[(replay.start + replay.end) // 2])[:16] for replay in replays(run)}
    assert {str(pd.Timestamp(label.x))[:16] for label in figure.layout.annotations} <= times


def test_a_household_shows_a_panel_for_each_channel_that_was_known_that_day():
    figure = plots.household_figure(household().day(DAY), "15 April")
    titles = [label.text for label in figure.layout.annotations]
    assert titles == ["<b>aggregate</b> (VA), 7.20 kVAh", "<b>kettle</b> (W), 0.11 kWh"]
    assert (figure.layout.yaxis.ticksuffix, figure.layout.yaxis2.ticksuffix) == ("VA", "W")


def test_coverage_has_a_row_for_each_channel_and_a_column_for_each_day():
    strips, _ = plots.coverage_figure(household(gap=slice(0, 720))).data
    days = (strips.x / 86_400_000).tolist()
    assert [*zip(strips.y, strips.customdata, days, strict=True)] == [
        ("aggregate", 50, 1),
        ("aggregate", 100, 1),
        ("kettle", 100, 2),
        ("chest freezer", 0, 2),
    ]


def test_the_library_shows_every_signature_in_the_colour_of_its_appliance():
    library = Library.of([*LIBRARY.signatures(), ("kettle", [1800.0])], source="x")
    first, lamp, second = plots.library_figure(library).data
    assert first.marker.color == second.marker.color != lamp.marker.color
    assert list(first.y) == [2000.0, 2500.0, 400.0]


def test_where_the_clocks_change_minutes_stay_even_and_labels_say_the_wall_clock():
    minutes = pd.date_range("2024-03-31", "2024-04-01", freq="min", tz="Europe/London", inclusive="left")
    x, axis = clock(minutes)
    assert set(np.diff(x)) == {np.timedelta64(1, "m")}
    assert axis["ticktext"][:3] == ["00:00", "03:00", "06:00"]
    assert axis["tickvals"][1] - axis["tickvals"][0] == np.timedelta64(2, "h")


class Addresses(HTMLParser):
    """Collect what a page would fetch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href")]


def test_a_page_needs_no_network_and_says_who_made_it(tmp_path, run):
    text = plots.save(plots.day_figure(run), tmp_path / "day.html").read_text()
    parser = Addresses()
    parser.feed(text)
    assert parser.found == []
    assert '<meta name="generator" content="meterveil' in text[:500]
    assert "Plotly.newPlot" in text


def test_a_page_does_not_run_what_a_household_is_named():
    section = plots.Section("<b>x</b>", "a & b", [["", "n"], ["<script>", "two words"]])
    text = plots.page("<script>alert(1)</script>", [section])
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert '<td class="words">two words</td>' in text


def test_a_picture_is_saved_in_its_format(tmp_path, chromium):
    path = plots.save(plots.library_figure(LIBRARY), tmp_path / "new" / "library.png", width=500)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in path.parent.iterdir()] == ["library.png"]


def test_a_picture_of_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"cannot be saved as x\.gif; use a name in \.html, \.png or \.svg"):
        plots.save(plots.library_figure(LIBRARY), tmp_path / "x.gif")


def test_a_picture_without_a_browser_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"needs Chrome or Chromium; install one, or save as \.html"):
        plots.save(plots.library_figure(LIBRARY), tmp_path / "x.png")


def test_a_picture_without_kaleido_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("meterveil.plots.saving.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install -c constraints\.txt -e '\.\[pictures\]'"):
        plots.save(plots.library_figure(LIBRARY), tmp_path / "x.png")
