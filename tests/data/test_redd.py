from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from spans import known_percent

from meterveil.data.channels import read_channel
from meterveil.data.releases import read_redd, redd_houses
from meterveil.errors import InputError

START = 1_303_185_600  # 2011-04-19 00:00 Eastern


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def release(tmp_path) -> Path:
    """One small house with two mains, of which each lacks a long stretch, and two circuits of a name."""
    folder = tmp_path / "redd" / "low_freq" / "house_2"
    folder.mkdir(parents=True)
    (folder / "labels.dat").write_text(
        "1 mains\n2 mains\n3 kitchen_outlets\n8 kitchen_outlets\n9 refrigerator\n"
    )
    channels = {1: range(12), 2: [0, 1, 2, 8, 9, 10, 11], 3: range(12), 8: range(12), 9: range(12)}
    for channel, minutes in channels.items():
        lines = "".join(f"{START + 60 * minute} {channel * 10}.50\n" for minute in minutes)
        (folder / f"channel_{channel}.dat").write_text(lines)
    return tmp_path / "redd"


def test_the_mains_add_up_and_a_minute_needs_all_of_them(release):
    home = read_redd(release, house=2)
    np.testing.assert_array_equal(home.aggregate_w, [31.0] * 3 + [np.nan] * 5 + [31.0] * 4)
    assert "aggregate: sum of 2 mains channels" in home.notes


def test_a_mains_that_stands_alone_is_the_total(release):
    (release / "low_freq" / "house_2" / "labels.dat").write_text("1 mains\n9 refrigerator\n")
    home = read_redd(release, house=2)
    assert home.aggregate_w.tolist() == [10.5] * 12
    assert home.notes == ()


def test_root_low_freq_and_house_folder_give_the_same_household(release):
    homes = [
        read_redd(folder) for folder in (release, release / "low_freq", release / "low_freq" / "house_2")
    ]
    for home in homes:
        assert home.name == "REDD house_2"
        np.testing.assert_array_equal(home.aggregate_w, homes[0].aggregate_w)


def test_local_days_are_those_of_the_eastern_united_states(release):
    home = read_redd(release)
    assert home.timezone == "America/New_York"
    assert home.minutes[0] == pd.Timestamp("2011-04-19", tz="America/New_York")


def test_mains_and_circuits_are_apparent_power_and_so_is_their_sum(release):
    assert set(read_redd(release).units.values()) == {"VA"}
    home = read_redd(release, aggregate="submeters")
    assert home.units["aggregate"] == "VA"
    assert home.aggregate_w[0] == 30.5 + 80.5 + 90.5


def test_circuits_of_one_name_are_numbered_and_spellings_are_mended(release):
    assert list(read_redd(release).appliances_w) == ["kitchen_outlets_1", "kitchen_outlets_2", "fridge"]
    home = read_redd(release, appliances=["refrigerator", "kitchen_outlets_2"])
    assert {name: watts[0] for name, watts in home.appliances_w.items()} == {
        "fridge": 90.5,
        "kitchen_outlets_2": 80.5,
    }


def test_an_unknown_appliance_lists_the_known_ones(release):
    with pytest.raises(InputError, match="REDD house_2 has no sauna; it has kitchen_outlets_1, kitchen_outl"):
        read_redd(release, appliances=["sauna"])


def test_mains_without_a_common_minute_are_all_gaps(release):
    lines = f"{START + 60 * 99} 5.0\n"
    (release / "low_freq" / "house_2" / "channel_2.dat").write_text(lines)
    with pytest.raises(InputError, match="aggregate is all gaps"):
        read_redd(release)


COVERAGE_PERCENT = {
    1: {1: 50.3, 5: 91.5, 6: 91.5, 10: 91.5, 11: 91.5, 13: 38.4, 14: 38.4},
    2: {1: 98.9, 2: 98.9, 3: 96.9, 4: 96.9, 5: 96.9, 6: 98.9, 7: 98.9, 8: 96.9, 9: 98.9, 10: 98.9, 11: 96.9},
    3: {1: 38.2, 6: 18.8, 7: 40.0, 8: 18.8, 9: 40.0, 10: 18.8, 13: 18.8, 16: 40.0},
    4: {1: 69.1, 4: 69.1, 7: 69.1, 8: 69.1, 15: 69.1},
}


@pytest.mark.parametrize("house", COVERAGE_PERCENT)
def test_a_house_covers_as_much_of_its_span_as_its_readme_states(real_data, house):
    folder = real_data / "redd" / "low_freq" / f"house_{house}"
    series = {n: read_channel(folder / f"channel_{n}.dat") for n in COVERAGE_PERCENT[house]}
    first = min(int(channel.minute[0]) for channel in series.values())
    last = max(int(channel.minute[-1]) for channel in series.values())
    for channel, stated in COVERAGE_PERCENT[house].items():
        assert known_percent(series[channel], first, last) == pytest.approx(stated, abs=0.1), channel


def test_the_labels_of_the_real_release_name_every_channel(real_data):
    houses = redd_houses(real_data / "redd")
    channels = {name: {*house.mains, *house.appliances.values()} for name, house in houses.items()}
    assert channels == {f"house_{number}": set(stated) for number, stated in COVERAGE_PERCENT.items()}


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


@pytest.mark.parametrize("house", [1, 3, 4])
def test_the_single_mains_of_other_real_houses_is_their_total(real_data, house):
    total = read_channel(real_data / "redd" / "low_freq" / f"house_{house}" / "channel_1.dat")
    home = read_redd(real_data / "redd" / "low_freq", house=house, appliances=[])
    np.testing.assert_array_equal(home.aggregate_w[total.minute - total.minute[0]], total.watts)
