"""Figures of an audit show what they were given."""

from datetime import date

import numpy as np
import pandas as pd

from meterveil.plots.audit import (
    agreement_figure,
    audited_day_figure,
    days_at_a_glance_figure,
    habits_figure,
)

MINUTES = pd.date_range("2024-06-01", periods=1440, freq="min", tz="Europe/London")


def test_every_day_is_a_row_and_unknown_slots_stay_empty():
    shown = np.zeros((2, 288))
    shown[1, 5] = np.nan
    figure = days_at_a_glance_figure([date(2024, 6, 1), date(2024, 6, 2)], shown, ["awake", "asleep"])
    grid = figure.data[0]
    assert list(grid.y) == ["Sat 01 Jun", "Sun 02 Jun"]
    assert np.isnan(grid.z[1][5])
    assert grid.customdata[1][5] == "unknown"
    assert [trace.name for trace in figure.data[1:]] == ["awake", "asleep"]


def test_habits_are_drawn_on_their_own_scale():
    means = np.full((7, 24), 0.25)
    figure = habits_figure({"kettle": ("uses an hour", means), "asleep": ("of the time", means * 0)})
    assert figure.data[0].zmax == 0.25
    assert figure.data[1].zmax == 1.0


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
    marks = np.asarray(figure.data[0].z)
    assert marks[:, 15].tolist() == [1, 2, 0]
    assert marks[:, 5].tolist() == [0, 0, 0]
