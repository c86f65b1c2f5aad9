"""The study of plants: edges are counted as its page says, and the controller drives the house."""

import numpy as np

from experiments.plants import CASES, edges, least_shown, masked_by_second
from meterveil.plots.studies import plants_figure


def kettle(seconds=600):
    load_w = np.full(seconds, 200.0)
    load_w[200:350] += 2000.0
    return load_w


def test_an_untouched_meter_shows_every_edge_and_a_flat_one_none():
    load_w = kettle()
    assert edges(load_w, load_w, 10) == (2, 2, 2)
    assert edges(load_w, np.full(600, 500.0), 10) == (2, 0, 0)


def test_a_blip_marks_an_edge_without_showing_its_size():
    load_w, meter_w = kettle(), np.full(600, 500.0)
    meter_w[200:206] += 2000.0
    assert edges(load_w, meter_w, 10) == (2, 0, 1)


def test_the_controller_hides_a_kettle_from_a_reader_of_a_minute():
    meter_w = masked_by_second(kettle(), CASES["1 s meter, 2 s dead time"], "flat", 0).meter_w
    assert edges(kettle(), kettle(), 60)[0] == 3
    assert edges(kettle()[120:], meter_w[120:], 60)[1:] == (0, 0)


def test_every_cell_of_the_picture_has_its_number():
    figure = plants_figure((1, 900), [("no battery", (1.0, 0.5)), ("own loop", (0.04, 0.0))])
    assert list(figure.data[0].text) == ["4 %", "0 %", "100 %", "50 %"]
    assert list(figure.data[0].x) == ["1 s", "15 min"] * 2


def test_the_least_that_a_loop_shows_is_what_it_cannot_know_in_time():
    load_w = np.full(40, 200.0)
    load_w[18:] += 1000.0
    assert least_shown(load_w, 3, 10).reshape(-1, 10).mean(axis=1).tolist() == [400.0, 600.0, 400.0, 400.0]
    load_w = np.full(40, 200.0)
    load_w[15:] += 1000.0
    assert least_shown(load_w, 3, 10).tolist() == [400.0] * 40
    assert np.diff(least_shown(load_w, 3, 1)).max() == 1000.0
