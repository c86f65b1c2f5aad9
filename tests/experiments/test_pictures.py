"""The picture of README draws what was simulated."""

from experiments import demo_picture


def test_the_picture_names_defence_and_time_zone_and_shows_the_few_levels_of_the_meter(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(demo_picture, "save", lambda figure, path: saved.append(path))
    run, figure = demo_picture.draw(tmp_path / "day.png")
    assert saved == [tmp_path / "day.png"]
    assert "veil" in figure.layout.title.text
    assert "local time, Europe/London" in str(figure.layout)
    levels_w = set(run.meter_w.round()) - {1000.0, 2000.0}  # decoys that cover spikes
    assert len(levels_w) <= 3
    assert run.certificate.missed.sum() == 0
