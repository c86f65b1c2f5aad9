"""`meterveil signatures` and `simulate --library`, as a user types them."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from meterveil.cli import app
from meterveil.data.protocols import LIBRARY_DAYS
from meterveil.data.signatures import library, read
from meterveil.data.synthetic import decoy_library
from meterveil.plots.simulation import library_figure


@pytest.fixture
def meterveil(tmp_path, monkeypatch):
    """Run a command in an empty folder, with no data but those that are named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("METERVEIL_DATA", raising=False)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], terminal_width=100)


def release(folder, kettle_w):
    """Write a UK-DALE release in which a kettle of each house draws these watts once a day."""
    for house, days in LIBRARY_DAYS.items():
        place = folder / "ukdale" / f"house_{house}"
        place.mkdir(parents=True)
        (place / "labels.dat").write_text("1 aggregate\n2 kettle\n")
        end = pd.Timestamp(days[-1]) + pd.Timedelta(days=1)
        minutes = pd.date_range(days[0], end, freq="min", tz="Europe/London", inclusive="left")
        watts = np.full(len(minutes), 1.0)
        for number in range(len(days)):
            start = number * 1440 + 480
            watts[start : start + len(kettle_w)] = kettle_w
        stamps = minutes.as_unit("s").asi8
        for channel, base_w in ((1, 200.0), (2, 0.0)):
            lines = (f"{stamp} {value:.1f}\n" for stamp, value in zip(stamps, watts + base_w, strict=True))
            (place / f"channel_{channel}.dat").write_text("".join(lines))
    return folder


BOIL_W = [900.0, 2300.0, 2310.0, 2290.0, 500.0]


def test_a_library_is_built_shown_and_replayed(meterveil, tmp_path):
    release(tmp_path / "data", BOIL_W)
    built = meterveil("signatures", "build", "--data", "data", "--out", "my/library.json")
    assert built.exit_code == 0, built.output
    assert "warning: only 4 of 10" in built.output
    assert [(one.name, one.house) for one in read(tmp_path / "my/library.json").signatures] == [
        ("kettle", 1),
        ("kettle", 1),
        ("kettle", 2),
        ("kettle", 2),
    ]
    shown = meterveil("signatures", "show", "my/library.json", "--out", "my/picture.html")
    assert re.search(r"kettle +house 2 2013-05-21 08:00 +5 +2,290 ", shown.output)
    digest = library(tmp_path / "my/library.json").digest()
    assert f"digest: {digest}" in built.output
    assert f"digest: {digest}" in shown.output
    assert "house 2" in page(tmp_path / "my/picture.html")
    assert meterveil("simulate", "--library", "my/library.json", "--out", "run").exit_code == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["library"]["digest"] == digest


def page(path):
    return path.read_text(encoding="utf-8")


def test_the_folder_of_the_data_may_come_from_the_environment(meterveil, tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_DATA", str(release(tmp_path / "data", BOIL_W)))
    result = meterveil("signatures", "build")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "signatures.json").exists()


def test_the_synthetic_library_is_shown_without_a_file(meterveil, tmp_path):
    result = meterveil("signatures", "show")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("synthetic\n")
    assert "main (10), nine (9), seven (7), five (5), three (3)" in result.output
    assert "washing machine" in page(tmp_path / "out" / "signatures.html")


def test_an_altered_library_is_not_replayed(meterveil, tmp_path):
    release(tmp_path / "data", BOIL_W)
    meterveil("signatures", "build", "--data", "data/ukdale", "--out", "library.json")
    text = (tmp_path / "library.json").read_text()
    (tmp_path / "library.json").write_text(text.replace("2310.0", "2311.0"))
    for command in (["simulate", "--library", "library.json"], ["signatures", "show", "library.json"]):
        result = meterveil(*command)
        assert result.exit_code == 2
        assert "library.json: its content does not match its sha256" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_picture_shows_half_an_hour_at_least_and_the_strongest_minute_whole():
    figure = library_figure(decoy_library(), ["house 1"])
    strongest_w = decoy_library().watts.max()
    for axis in figure.select_yaxes():
        assert axis.range[0] == 0
        assert strongest_w < axis.range[1] < 1.2 * strongest_w
    assert {axis.range for axis in figure.select_xaxes()} == {(0, 35)}
    heads = [head.text for head in figure.layout.annotations]
    assert heads[:2] == ["<b>kettle</b>, house 1<br>5 min, median 1,980 W", "<b>kettle</b><br>9 min, median 2,436 W"]


REFUSED = {
    "no folder of data sets is named; pass --data or set METERVEIL_DATA": ["build"],
    "'nowhere' is not a folder of data sets; pass --data": ["build", "--data", "nowhere"],
    "empty is a folder without data of a known kind": ["build", "--data", "empty"],
    "none of 20 uses of kettle, toaster": ["build", "--data", "weak"],
    "--out 'library.txt' does not end in .json": ["build", "--out", "library.txt"],
    "holds foreign.json that meterveil did not write": ["build", "--data", "weak", "--out", "foreign.json"],
    'foreign.json: a signature library must be a JSON object with "format"': ["show", "foreign.json"],
    "cannot read none.json: No such file": ["show", "none.json"],
    "long.json: signature 0 (oven) has shape (1441,)": ["show", "long.json"],
    "nan.json: signature 0 (oven) has negative or missing watts": ["show", "nan.json"],
    "a picture cannot be saved as picture.gif": ["show", "--out", "picture.gif"],
    "holds page.html that meterveil did not write": ["show", "--out", "page.html"],
}


@pytest.fixture(scope="module")
def weak_release(tmp_path_factory):
    return release(tmp_path_factory.mktemp("weak"), [900.0, 2300.0, 1.0])


@pytest.mark.parametrize(("words", "command"), REFUSED.items())
def test_what_a_user_can_mend_is_said_in_one_line(meterveil, tmp_path, weak_release, words, command):
    (tmp_path / "weak").symlink_to(weak_release)
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign.json").write_text('{"holiday": 1}')
    (tmp_path / "page.html").write_text("my holiday")
    for name, watts in (("long", [1.0] * 1441), ("nan", [1.0, float("nan")])):
        document = {"format": "meterveil-signatures-1", "source": "x"}
        (tmp_path / f"{name}.json").write_text(
            json.dumps({**document, "signatures": [{"name": "oven", "watts": watts}]})
        )
    files = set(tmp_path.rglob("*"))
    result = meterveil("signatures", *command)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert set(tmp_path.rglob("*")) == files
