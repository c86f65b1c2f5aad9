"""UK-DALE and REDD as released: small folders in their layout, and the real data against its readme."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from meterveil.data.channels import read_channel
from meterveil.data.household import canonical, distinct
from meterveil.data.releases import REDD, UKDALE, find_houses, read_redd, read_ukdale
from meterveil.errors import InputError

UKDALE_START = 1_363_564_800  # 2013-03-18 00:00 UTC
REDD_START = 1_303_185_600  # 2011-04-19 00:00 Eastern


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def ukdale(tmp_path) -> Path:
    """Two small houses; house 2 lacks the file of its channel 3."""
    root = tmp_path / "ukdale"
    for house, labels in (("house_1", "1 aggregate\n2 kettle\n"), ("house_2", "1 aggregate\n3 dish_washer\n")):
        (root / house).mkdir(parents=True)
        (root / house / "labels.dat").write_text(labels)
        write_channel(root / house, 1, UKDALE_START, {n: 300 + 10 * n for n in range(4)})
    write_channel(root / "house_1", 2, UKDALE_START, {0: 0, 1: 2000})
    return root


@pytest.fixture
def redd(tmp_path) -> Path:
    """One small house with two mains, of which one lacks a long stretch, and two circuits of a name."""
    folder = tmp_path / "redd" / "low_freq" / "house_2"
    folder.mkdir(parents=True)
    labels = "1 mains\n2 mains\n3 kitchen_outlets\n8 kitchen_outlets\n9 refrigerator\n"
    (folder / "labels.dat").write_text(labels)
    channels = {1: range(12), 2: [0, 1, 2, 8, 9, 10, 11], 3: range(12), 8: range(12), 9: range(12)}
    for channel, minutes in channels.items():
        write_channel(folder, channel, REDD_START, dict.fromkeys(minutes, channel * 10 + 0.5))
    return tmp_path / "redd"


def write_channel(folder: Path, channel: int, start: int, watts: dict[int, float]) -> None:
    lines = (f"{start + 60 * minute + offset} {w}\n" for minute, w in watts.items() for offset in (0, 6, 12))
    (folder / f"channel_{channel}.dat").write_text("".join(lines))


def minute(text: str) -> int:
    return int(pd.Timestamp(text, tz="UTC").timestamp()) // 60


def known_percent(series, first_minute: int, last_minute: int) -> float:
    low, high = np.searchsorted(series.minute, [first_minute, last_minute + 1])
    return 100 * float(high - low) / (last_minute + 1 - first_minute)


def test_a_house_of_uk_dale_becomes_a_household_in_london(ukdale):
    home = read_ukdale(ukdale, house=1)
    assert (home.name, home.timezone) == ("UK-DALE house_1", "Europe/London")
    assert home.minutes[0] == pd.Timestamp("2013-03-18 00:00", tz="Europe/London")
    assert home.aggregate_w.tolist() == [300, 310, 320, 330]
    np.testing.assert_array_equal(home.appliances_w["kettle"], [0, 2000, np.nan, np.nan])
    assert home.units == {"aggregate": "VA", "kettle": "W"}
    assert read_ukdale(ukdale / "house_1").name == "UK-DALE house_1"


def test_the_sum_of_the_sub_meters_can_replace_a_missing_aggregate(ukdale):
    (ukdale / "house_1" / "labels.dat").write_text("2 kettle\n")
    with pytest.raises(InputError, match="no channel is labelled aggregate; use aggregate='submeters'"):
        read_ukdale(ukdale, house=1)
    home = read_ukdale(ukdale, house=1, aggregate="submeters")
    assert (home.aggregate_w.tolist(), home.units["aggregate"]) == ([0, 2000], "W")


def test_only_the_named_channels_are_read(ukdale):
    (ukdale / "house_1" / "channel_2.dat").write_text("not a number\n")
    assert read_ukdale(ukdale, house=1, appliances=[]).appliances_w == {}
    with pytest.raises(InputError, match=r"channel_2\.dat, line 1"):
        read_ukdale(ukdale, house=1)


def test_houses_and_names_are_listed_without_reading_a_channel(ukdale):
    for path in ukdale.glob("house_*/channel_*.dat"):
        path.unlink()
    houses = find_houses(UKDALE, ukdale)
    assert list(houses) == ["house_1", "house_2"]
    assert (houses["house_2"].appliances, houses["house_2"].mains) == ({"dishwasher": 3}, (1,))


@pytest.mark.parametrize(
    ("folder", "options", "message"),
    [
        ("nowhere", {}, "nowhere is not a folder; give the folder of the UK-DALE release"),
        ("..", {}, r"neither labels\.dat nor folders such as house_1"),
        (".", {}, r"several houses \(house_1, house_2\); name one"),
        (".", {"house": 7}, "has no house_7; it has house_1, house_2"),
        ("house_1", {"house": 2}, "has no house_2; it has house_1"),
        (".", {"house": 2}, r"labels\.dat lists channels without a file: channel_3\.dat"),
        (".", {"house": 1, "appliances": ["sauna"]}, "UK-DALE house_1 has no sauna; it has kettle"),
    ],
)
def test_what_is_missing_is_named(ukdale, folder, options, message):
    with pytest.raises(InputError, match=message):
        read_ukdale(ukdale / folder, **options)
    assert read_ukdale(ukdale, house=2, appliances=[]).aggregate_w.tolist() == [300, 310, 320, 330]


def test_missing_and_broken_labels_are_named(ukdale):
    (ukdale / "house_1" / "labels.dat").write_text("1 aggregate\nkettle\n")
    with pytest.raises(InputError, match=r"labels\.dat, line 2: 'kettle' is not '<channel> <name>'"):
        read_ukdale(ukdale, house=1)
    (ukdale / "house_1" / "labels.dat").unlink()
    with pytest.raises(InputError, match=r"house_1 has no labels\.dat"):
        read_ukdale(ukdale, house=1)


def test_spellings_lead_to_one_name_and_several_of_a_kind_are_numbered():
    assert {canonical(label) for label in ("dishwaser", "dish_washer", "Dish-washer")} == {"dishwasher"}
    assert {canonical(label) for label in ("refrigerator", "Fridge-freezer", "fridge")} == {"fridge"}
    assert (canonical("furance"), canonical("washer_dryer")) == ("furnace", "washer_dryer")
    numbered = distinct(["tv", "kitchen_outlets", "kitchen_outlets"])
    assert numbered == ["tv", "kitchen_outlets_1", "kitchen_outlets_2"]


def test_the_mains_of_redd_add_up_and_a_minute_needs_all_of_them(redd):
    home = read_redd(redd, house=2)
    np.testing.assert_array_equal(home.aggregate_w, [31.0] * 3 + [np.nan] * 5 + [31.0] * 4)
    assert "aggregate: sum of 2 mains channels" in home.notes
    assert home.minutes[0] == pd.Timestamp("2011-04-19", tz="America/New_York")
    for folder in (redd / "low_freq", redd / "low_freq" / "house_2"):
        same = read_redd(folder)
        assert (same.name, same.timezone) == ("REDD house_2", "America/New_York")
        np.testing.assert_array_equal(same.aggregate_w, home.aggregate_w)


def test_a_single_mains_is_the_total(redd):
    (redd / "low_freq" / "house_2" / "labels.dat").write_text("1 mains\n9 refrigerator\n")
    home = read_redd(redd, house=2)
    assert (home.aggregate_w.tolist(), home.notes) == ([10.5] * 12, ())


def test_mains_and_circuits_of_redd_are_apparent_power_and_so_is_their_sum(redd):
    assert set(read_redd(redd).units.values()) == {"VA"}
    home = read_redd(redd, aggregate="submeters")
    assert (home.units["aggregate"], home.aggregate_w[0]) == ("VA", 30.5 + 80.5 + 90.5)


def test_circuits_of_one_name_are_numbered_and_any_spelling_finds_them(redd):
    assert list(read_redd(redd).appliances_w) == ["kitchen_outlets_1", "kitchen_outlets_2", "fridge"]
    home = read_redd(redd, appliances=["refrigerator", "kitchen_outlets_2"])
    first = {name: watts[0] for name, watts in home.appliances_w.items()}
    assert first == {"fridge": 90.5, "kitchen_outlets_2": 80.5}


def test_mains_without_a_common_minute_are_all_gaps(redd):
    (redd / "low_freq" / "house_2" / "channel_2.dat").write_text(f"{REDD_START + 60 * 99} 5.0\n")
    with pytest.raises(InputError, match="aggregate is all gaps"):
        read_redd(redd)


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


REDD_COVERAGE_PERCENT = {
    1: {1: 50.3, 5: 91.5, 6: 91.5, 10: 91.5, 11: 91.5, 13: 38.4, 14: 38.4},
    2: {1: 98.9, 2: 98.9, 3: 96.9, 4: 96.9, 5: 96.9, 6: 98.9, 7: 98.9, 8: 96.9, 9: 98.9, 10: 98.9, 11: 96.9},
    3: {1: 38.2, 6: 18.8, 7: 40.0, 8: 18.8, 9: 40.0, 10: 18.8, 13: 18.8, 16: 40.0},
    4: {1: 69.1, 4: 69.1, 7: 69.1, 8: 69.1, 15: 69.1},
}


@pytest.mark.parametrize("house", REDD_COVERAGE_PERCENT)
def test_a_house_covers_as_much_of_its_span_as_its_readme_states(real_data, house):
    folder = real_data / "redd" / "low_freq" / f"house_{house}"
    series = {n: read_channel(folder / f"channel_{n}.dat") for n in REDD_COVERAGE_PERCENT[house]}
    first = min(int(channel.minute[0]) for channel in series.values())
    last = max(int(channel.minute[-1]) for channel in series.values())
    for channel, stated in REDD_COVERAGE_PERCENT[house].items():
        assert known_percent(series[channel], first, last) == pytest.approx(stated, abs=0.1), channel


def test_the_labels_of_the_real_release_name_every_channel(real_data):
    houses = find_houses(REDD, real_data / "redd")
    channels = {name: {*house.mains, *house.appliances.values()} for name, house in houses.items()}
    assert channels == {f"house_{number}": set(stated) for number, stated in REDD_COVERAGE_PERCENT.items()}


def test_the_real_house_2_adds_both_mains(real_data):
    folder = real_data / "redd" / "low_freq" / "house_2"
    left, right = (read_channel(folder / f"channel_{n}.dat") for n in (1, 2))
    home = read_redd(real_data / "redd", house=2, appliances=["fridge", "lighting"])
    assert home.minutes[0] == pd.Timestamp("2011-04-18 01:31", tz="America/New_York")
    assert home.minutes[-1] == pd.Timestamp("2011-05-01 23:04", tz="America/New_York")
    known = left.minute - left.minute[0]
    np.testing.assert_array_equal(left.minute, right.minute)
    np.testing.assert_allclose(home.aggregate_w[known], left.watts + right.watts)
    assert home.coverage()["aggregate"] == pytest.approx(0.989, abs=0.002)
