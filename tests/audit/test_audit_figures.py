"""Figures of an audit show what they were given."""

from datetime import date

import numpy as np
import pandas as pd

from meterveil.plots.audit import agreement_figure, audited_day_figure, days_at_a_glance_figure, habits_figure

MINUTES = pd.date_range("2024-06-01", periods=1440, freq="min", tz="Europe/London")


def test_every_day_is_a_row_and_unknown_slots_stay_empty():
    shown = np.zeros((2, 288))
    shown[1, 5] = np.nan
    figure = days_at_a_glance_figure([date(2024, 6, 1), date(2024, 6, 2)], shown, ["awake", "asleep"])
    grid = figure.data[0]
    assert list(grid.y) == ["Sat 01 Jun", "Sun 02 Jun", "Sun 02 Jun"]
    assert [round(start * 12) for start in grid.base] == [0, 0, 6]
    assert [round(hours * 12) for hours in grid.x] == [288, 5, 282]
    assert [trace.name for trace in figure.data[1:]] == ["awake", "asleep"]


def test_habits_are_drawn_on_their_own_scale():
    means = np.full((7, 24), 0.25)
    figure = habits_figure({"kettle": ("uses an hour", means), "asleep": ("of the time", means * 0)})
    highest, lowest = ({*trace.marker.color} for trace in figure.data)
    assert (len(highest), len(lowest)) == (1, 1)
    assert highest != lowest


def test_a_day_shows_its_meter_its_probabilities_and_its_quiet():
    reading_w = np.full(1440, 100.0)
    figure = audited_day_figure(MINUTES, reading_w, {"kettle": np.full(1440, 0.5)}, [("asleep", 0, 420)])
    assert next(trace for trace in figure.data if trace.name == "kettle").y[0] == 50.0
    assert [trace.name for trace in figure.data if trace.showlegend] == ["seems asleep"]
    assert len(figure.layout.shapes) == 1


def test_truth_and_guesses_have_their_own_marks():
    on = np.zeros(1440)
    on[10:20] = 1.0
    figure = agreement_figure(MINUTES, {"kettle": {"true": on, "fhmm": on, "shipped": on * np.nan}})
    marks = figure.data[0]
    shown = [
        (lane, mark, length / 60_000) for lane, mark, length in zip(marks.y, marks.customdata, marks.x, strict=True)
    ]
    assert [one for one in shown if one[1]] == [("true", 1, 10), ("fhmm", 2, 10)]
    assert shown[-1] == ("shipped", 0, 1440)
