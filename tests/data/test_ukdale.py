from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from spans import known_percent

from meterveil.data.appliances import canonical, distinct
from meterveil.data.channels import read_channel
from meterveil.data.releases import read_ukdale, ukdale_houses
from meterveil.errors import InputError

START = 1_363_564_800  # 2013-03-18 00:00 UTC
LABELS = {"house_1": "1 aggregate\n2 kettle\n", "house_2": "1 aggregate\n3 dish_washer\n"}


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def release(tmp_path) -> Path:
    """Two small houses in the layout of the release; house 2 lacks the file of its channel 3."""
    for house, labels in (
        ("house_1", "1 aggregate\n2 kettle\n"),
        ("house_2", "1 aggregate\n3 dish_washer\n"),
    ):
        folder = tmp_path / "ukdale" / house
        folder.mkdir(parents=True)
        (folder / "labels.dat").write_text(labels)
        write_channel(folder, 1, [300, 310, 320, 330])
    write_channel(tmp_path / "ukdale" / "house_1", 2, [0, 2000])
    return tmp_path / "ukdale"


def write_channel(folder: Path, channel: int, watts: list[int]) -> None:
    lines = (
        f"{START + 60 * minute + offset} {w}\n" for minute, w in enumerate(watts) for offset in (0, 6, 12)
    )
    (folder / f"channel_{channel}.dat").write_text("".join(lines))


def minute(text: str) -> int:
    return int(pd.Timestamp(text, tz="UTC").timestamp()) // 60


def test_a_house_of_the_release_becomes_a_household_in_london(release):
    home = read_ukdale(release, house=1)
    assert home.name == "UK-DALE house_1"
    assert home.timezone == "Europe/London"
    assert home.minutes[0] == pd.Timestamp("2013-03-18 00:00", tz="Europe/London")
    assert home.aggregate_w.tolist() == [300, 310, 320, 330]
    np.testing.assert_array_equal(home.appliances_w["kettle"], [0, 2000, np.nan, np.nan])


def test_the_aggregate_is_apparent_power_and_appliances_active_power(release):
    assert read_ukdale(release, house=1).units == {"aggregate": "VA", "kettle": "W"}


def test_the_folder_of_a_house_needs_no_number(release):
    home = read_ukdale(release / "house_1")
    assert home.name == "UK-DALE house_1"


def test_the_sum_of_the_sub_meters_can_stand_for_the_aggregate(release):
    (release / "house_1" / "channel_1.dat").unlink()
    home = read_ukdale(release, house=1, aggregate="submeters")
    assert home.aggregate_w.tolist() == [0, 2000]
    assert home.units["aggregate"] == "W"


def test_only_channels_that_are_asked_for_are_read(release):
    (release / "house_1" / "channel_2.dat").write_text("not a number\n")
    assert read_ukdale(release, house=1, appliances=[]).appliances_w == {}
    with pytest.raises(InputError, match=r"channel_2\.dat, line 1"):
        read_ukdale(release, house=1)


def test_houses_and_names_are_listed_without_reading_a_channel(release):
    for path in release.glob("house_*/channel_*.dat"):
        path.unlink()
    houses = ukdale_houses(release)
    assert list(houses) == ["house_1", "house_2"]
    assert houses["house_2"].appliances == {"dishwasher": 3}
    assert houses["house_2"].mains == (1,)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="nowhere is not a folder; give the folder of the UK-DALE release"):
        read_ukdale(tmp_path / "nowhere")


def test_a_folder_of_something_else_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"neither labels\.dat nor folders such as house_1"):
        read_ukdale(tmp_path)


def test_a_house_without_labels_is_an_error(release):
    (release / "house_2" / "labels.dat").unlink()
    with pytest.raises(InputError, match=r"house_2 has no labels\.dat"):
        read_ukdale(release, house=2)


def test_a_label_without_its_channel_file_is_named(release):
    with pytest.raises(InputError, match=r"labels\.dat lists channels without a file: channel_3\.dat"):
        read_ukdale(release, house=2)
    assert read_ukdale(release, house=2, appliances=[]).aggregate_w.tolist() == [300, 310, 320, 330]


def test_a_label_that_is_not_a_number_and_a_name_is_an_error(release):
    (release / "house_1" / "labels.dat").write_text("1 aggregate\nkettle\n")
    with pytest.raises(InputError, match=r"labels\.dat, line 2: 'kettle' is not '<channel> <name>'"):
        read_ukdale(release, house=1)


def test_an_unknown_house_lists_the_known_ones(release):
    with pytest.raises(InputError, match="has no house_7; it has house_1, house_2"):
        read_ukdale(release, house=7)
    with pytest.raises(InputError, match="has no house_2; it has house_1"):
        read_ukdale(release / "house_1", house=2)


def test_several_houses_ask_for_a_choice(release):
    with pytest.raises(InputError, match=r"several houses \(house_1, house_2\); name one"):
        read_ukdale(release)


def test_an_unknown_appliance_lists_the_known_ones(release):
    with pytest.raises(InputError, match="UK-DALE house_1 has no sauna; it has kettle"):
        read_ukdale(release, house=1, appliances=["sauna"])


def test_a_house_without_an_aggregate_suggests_the_sub_meters(release):
    (release / "house_1" / "labels.dat").write_text("2 kettle\n")
    with pytest.raises(InputError, match="no channel is labelled aggregate; use aggregate='submeters'"):
        read_ukdale(release, house=1)
    assert read_ukdale(release, house=1, aggregate="submeters").aggregate_w.tolist() == [0, 2000]


def test_spellings_of_releases_lead_to_one_name():
    assert {canonical(label) for label in ("dishwaser", "dish_washer", "Dish-washer")} == {"dishwasher"}
    assert {canonical(label) for label in ("refrigerator", "Fridge-freezer", "fridge")} == {"fridge"}
    assert canonical("furance") == "furnace"
    assert canonical("washer_dryer") == "washer_dryer"


def test_several_of_a_kind_are_numbered_in_the_order_of_their_channels():
    assert distinct(["tv", "kitchen_outlets", "kitchen_outlets"]) == [
        "tv",
        "kitchen_outlets_1",
        "kitchen_outlets_2",
    ]


HOUSE_1_PIECES = {
    "A": (minute("2013-01-18 00:00"), minute("2013-01-26 23:59")),
    "B": (minute("2013-02-09 08:56"), minute("2013-02-09 16:05")),
    "C": (minute("2013-03-12 12:00"), minute("2013-07-31 23:59")),
}
HOUSE_1_COVERAGE_PERCENT = {
    1: {"A": 96.5, "B": 99.1, "C": 99.7},
    6: {"A": 96.5, "B": 100.0, "C": 99.7},
    7: {"A": 0.0, "B": 99.5, "C": 0.0},
    10: {"A": 96.4, "B": 83.5, "C": 98.0},
    11: {"A": 0.0, "B": 97.0, "C": 0.0},
    12: {"A": 96.5, "B": 100.0, "C": 99.6},
    13: {"A": 96.5, "B": 100.0, "C": 99.7},
}


@pytest.mark.parametrize("channel", HOUSE_1_COVERAGE_PERCENT)
def test_house_1_covers_as_much_of_its_three_pieces_as_its_readme_states(real_data, channel):
    series = read_channel(real_data / "ukdale" / "house_1" / f"channel_{channel}.dat")
    for piece, stated in HOUSE_1_COVERAGE_PERCENT[channel].items():
        assert known_percent(series, *HOUSE_1_PIECES[piece]) == pytest.approx(stated, abs=0.1)


@pytest.mark.parametrize("channel", [1, 8, 12, 13, 14, 15])
def test_house_2_is_covered_in_full(real_data, channel):
    series = read_channel(real_data / "ukdale" / "house_2" / f"channel_{channel}.dat")
    span = minute("2013-05-20 21:28"), minute("2013-07-31 23:59")
    assert known_percent(series, *span) == pytest.approx(100.0, abs=0.1)


def test_the_real_house_1_spans_its_aggregate_and_its_long_gaps_stay_gaps(real_data):
    home = read_ukdale(real_data / "ukdale", house=1, appliances=["kettle", "toaster"])
    assert home.minutes[0] == pd.Timestamp("2013-01-18 00:00", tz="Europe/London")
    assert home.minutes[-1] == pd.Timestamp("2013-08-01 00:59", tz="Europe/London")
    gap = slice(*home.minutes.searchsorted(pd.to_datetime(["2013-03-21 13:45Z", "2013-03-21 17:24Z"])))
    assert np.isnan(home.aggregate_w[gap]).all()
    toaster = home.minutes[~np.isnan(home.appliances_w["toaster"])]
    assert {stamp.date().isoformat() for stamp in toaster} == {"2013-02-09"}


def test_a_real_kettle_boils_at_kilowatts(real_data):
    home = read_ukdale(real_data / "ukdale", house=2, appliances=["kettle", "dish_washer"])
    assert list(home.appliances_w) == ["kettle", "dishwasher"]
    assert 2_000 < np.nanmax(home.appliances_w["kettle"]) < 3_500
