"""Figures show what they were given: their numbers are read back from the figure itself."""

import re
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright
from plotly.offline import get_plotlyjs_version

import meterveil
from meterveil.bench.simulation import simulate
from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.data.household import Household
from meterveil.data.simulation import Setup
from meterveil.errors import InputError
from meterveil.plots.attack import Point, defences_figure
from meterveil.plots.household import coverage_figure, household_figure
from meterveil.plots.html import Section, figure_html, page, render, save
from meterveil.plots.look import clock
from meterveil.plots.simulation import day_figure, days_figure, library_figure
from meterveil.plots.studies import curves_figure, sides_figure, trade_off_figure

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
    figure = day_figure(run)
    (meter,) = named(figure, "meter")
    assert np.allclose(np.asarray(meter.y, dtype=float), run.meter_w, atol=0.5, equal_nan=True)
    _, line = named(figure, "load")
    assert np.isnan(np.asarray(line.y, dtype=float)).sum() == 100


def test_the_battery_is_drawn_in_the_colour_of_each_decoy(run):
    figure = day_figure(run)
    (kettle,), (lamp,) = named(figure, "decoy: kettle"), named(figure, "decoy: lamp")
    assert len(kettle.x) == np.sum((run.decoy == 0) & (run.battery_w != 0))
    assert len(lamp.x) == np.sum((run.decoy == 1) & (run.battery_w != 0))
    assert kettle.marker.color != lamp.marker.color


def test_power_that_plays_no_appliance_is_said_to_hold_the_meter():
    uneven = household()
    uneven.aggregate_w[::7] = 900.0
    (held,) = named(day_figure(simulate(uneven, "flat", DAY, 1, Setup(LIBRARY))), "holding the meter")
    assert len(held.x) > 1000


def test_a_gap_is_shaded_in_every_panel_and_named_once(run):
    shapes = [shape for shape in day_figure(run).layout.shapes if shape.name]
    assert len(shapes) == 3
    assert [shape.showlegend for shape in shapes].count(True) == 1
    assert pd.Timestamp(shapes[0].x0) == pd.Timestamp("2024-04-15 10:00")
    assert pd.Timestamp(shapes[0].x1) == pd.Timestamp("2024-04-15 11:40")


def test_a_battery_without_a_budget_has_no_line_for_it():
    unlimited = Setup(LIBRARY, Battery(budget_kwh=float("inf")))
    figure = day_figure(simulate(household(), "flat", DAY, 1, unlimited))
    assert not [trace for trace in figure.data if "budget" in (trace.name or "")]


def test_many_days_are_bars_of_energy_and_a_line_of_charge(long_run):
    moved, charge = days_figure(long_run).data
    assert len(moved.y) == len(charge.y) == 2
    assert charge.y[-1] == pytest.approx(long_run.soc[-1] * 100)


def test_the_picture_of_a_day_names_its_defence_and_time_zone(run):
    figure = day_figure(run)
    assert "random_equal" in figure.layout.title.text
    assert "local time, Europe/London" in str(figure.layout)


def test_a_household_shows_a_panel_for_each_channel_that_was_known_that_day():
    figure = household_figure(household().day(DAY), "15 April")
    titles = [label.text for label in figure.layout.annotations]
    assert titles == ["<b>aggregate</b> (VA), 7.20 kVAh", "<b>kettle</b> (W), 0.11 kWh"]
    assert (figure.layout.yaxis.ticksuffix, figure.layout.yaxis2.ticksuffix) == ("VA", "W")


def test_coverage_has_a_row_for_each_channel_and_a_column_for_each_day():
    strips, _ = coverage_figure(household(gap=slice(0, 720))).data
    days = (strips.x / 86_400_000).tolist()
    assert [*zip(strips.y, strips.customdata, days, strict=True)] == [
        ("aggregate", 50, 1),
        ("aggregate", 100, 1),
        ("kettle", 100, 2),
        ("chest freezer", 0, 2),
    ]


def test_the_library_shows_every_signature_in_the_colour_of_its_appliance():
    library = Library.of([*LIBRARY.signatures(), ("kettle", [1800.0])], source="x")
    first, lamp, second = library_figure(library).data
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
    text = save(day_figure(run), tmp_path / "day.html").read_text()
    parser = Addresses()
    parser.feed(text)
    assert parser.found == []
    assert '<meta name="generator" content="meterveil' in text[:500]
    assert text.count("plotly.js (basic") == 1
    assert len(text) < 1_500_000


def test_a_page_does_not_run_what_a_household_is_named():
    section = Section("<b>x</b>", "a & b", [["", "n"], ["<script>", "two words"]])
    text = page("<script>alert(1)</script>", [section])
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert '<td class="words">two words</td>' in text


def test_a_page_without_a_figure_has_no_script():
    assert len(page("words", [Section("one", "two")])) < 10_000


def test_the_script_has_the_major_version_of_plotly_and_all_traces_that_are_drawn(run):
    text = page("x", [Section(figure=day_figure(run))])
    (version,) = re.findall(r"plotly\.js \(basic - minified\) v(\d+)", text)
    assert version == get_plotlyjs_version().split(".")[0]
    folders = (Path(meterveil.__file__).parent, Path(meterveil.__file__).parents[2] / "experiments")
    sources = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    drawn = {name for source in sources for name in re.findall(r"\bgo\.(\w+)\(", source)}
    assert drawn <= {"Figure", "Scatter", "Bar", "Pie"}


def test_sections_fold_away_colour_verdicts_and_are_listed():
    sections = [Section("A & B", "words", [["", "verdict"], ["x", "better"]], is_folded=True)]
    text = page("title", sections, "one\ntwo", verdicts={"better": "#0072B2"}, has_contents=True)
    assert '<details id="a-b"><summary>A &amp; B</summary>' in text
    assert '<a href="#a-b">' in text
    assert 'style="color: #0072B2">better</td>' in text
    assert "<li>one</li><li>two</li>" in text


def test_figures_are_embedded_without_a_way_out_of_their_script():
    figure = library_figure(Library.of([("</script><b>", [1.0])], source="x"))
    assert figure_html(figure).count("</script>") == 1
    assert "&lt;" in render("page.html", title="<", sections=[], intro=[])


def test_pages_draw_in_a_browser_on_a_phone_and_when_a_section_is_opened(chromium, tmp_path, run):
    points = [Point("none", 0.0, 0.7), Point("random_equal:8.0", 8.0, 0.5), Point("veil", 7.8, 0.3)]
    sections = [
        Section("a", figure=defences_figure(points, 0.3, 0.7, "adaptive")),
        Section("b", figure=day_figure(run), is_folded=True),
    ]
    (tmp_path / "x.html").write_text(page("x", sections))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 390, "height": 800})
        problems = []
        opened.on("console", lambda message: problems.append(message.text))
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.goto((tmp_path / "x.html").as_uri())
        drawn = opened.locator(".js-plotly-plot")
        assert drawn.count() == 1
        opened.locator("summary").click()
        drawn.nth(1).locator(".main-svg").first.wait_for()
        assert opened.evaluate("document.documentElement.scrollWidth") == 390
        assert drawn.evaluate_all("charts => charts.map(chart => chart.scrollWidth)") == [366, 366]  # none scrolls
        browser.close()
    assert problems == []


def test_a_picture_is_saved_in_its_format(tmp_path, chromium):
    path = save(library_figure(LIBRARY), tmp_path / "new" / "library.png", width=500)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in path.parent.iterdir()] == ["library.png"]


def test_a_picture_of_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"cannot be saved as x\.gif; use a name in \.html, \.png or \.svg"):
        save(library_figure(LIBRARY), tmp_path / "x.gif")


def test_a_picture_without_a_browser_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"needs Chrome or Chromium; install one, or save as \.html"):
        save(library_figure(LIBRARY), tmp_path / "x.png")


def test_a_picture_without_kaleido_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("meterveil.plots.html.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install -c constraints\.txt -e '\.\[pictures\]'"):
        save(library_figure(LIBRARY), tmp_path / "x.png")


def test_curves_have_a_panel_for_each_measure_and_a_colour_for_each_house():
    panels = {"bits": {"a": [(2.0, 1.0), (1.0, 5.0)], "b": [(1.0, 3.0)]}, "kWh": {"a": [(1.0, 2.0)]}}
    figure = curves_figure(panels, "decoys a day", logarithmic=["bits"])
    assert figure.data[0].x == (1.0, 2.0)
    assert figure.data[0].line.color == figure.data[2].line.color != figure.data[1].line.color
    assert (figure.layout.yaxis.type, figure.layout.yaxis2.type) == ("log", None)


def test_sides_have_a_panel_for_each_house_and_metric_and_no_bar_for_an_unknown_figure():
    houses = {
        "one": {"RMSE": {"paper": 107.0, "ours": 178.0}, "cost": {"paper": -0.764, "ours": 0.981}},
        "two": {"RMSE": {"paper": 166.0, "ours": 347.0}, "cost": {"paper": float("nan"), "ours": 0.984}},
    }
    figure = sides_figure(houses, {"RMSE": 0, "cost": 3})
    assert [bar.text for bar in figure.data] == [("107", "178"), ("166", "347"), ("-0.764", "0.981"), ("0.984",)]
    assert figure.data[0].marker.color[1] == figure.data[3].marker.color[0]
    assert [note.text for note in figure.layout.annotations] == ["<b>one</b>", "<b>two</b>"]


def test_points_that_another_budget_beats_in_cost_and_bits_have_no_ring():
    points = [(0.1, 10.0, "8 kWh"), (0.2, 300.0, "4 kWh"), (0.05, 3000.0, "2 kWh")]
    panels = {"house": {"flat": points}, "other": {"flat": points[:2], "dear": points[:1]}}
    traces = trade_off_figure(panels, "cost", "title").data
    assert [width > 0 for width in traces[0].marker.line.width] == [True, False, True]
    assert [(trace.name, trace.showlegend) for trace in traces] == [("flat", True), ("flat", False), ("dear", True)]
