"""The picture of README draws what was simulated."""

import pandas as pd

from experiments import demo_picture


def test_the_picture_names_defence_time_zone_and_decoys_where_they_ran(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(demo_picture, "save", lambda figure, path: saved.append(path))
    run, figure = demo_picture.draw(tmp_path / "day.png")
    assert saved == [tmp_path / "day.png"]
    assert "random_equal" in figure.layout.title.text
    assert "local time, Europe/London" in str(figure.layout)
    labels = figure.layout.annotations
    assert labels
    times = {str(run.minutes[(replay.start + replay.end) // 2])[:16] for replay in demo_picture.replays(run)}
    assert {str(pd.Timestamp(label.x))[:16] for label in labels} <= times
