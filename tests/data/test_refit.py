from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.data.releases import REFIT_APPLIANCES, appliance_columns, read_refit
from meterveil.errors import InputError

HEADER = "Time,Unix,Aggregate," + ",".join(f"Appliance{n}" for n in range(1, 10)) + ",Issues"
START = 1_393_632_000


def row(second: int, aggregate: object = 300, kettle: object = 0, issues: int = 0) -> str:
    text = pd.Timestamp(second, unit="s").strftime("%Y-%m-%d %H:%M:%S")
    return f"{text},{second},{aggregate},90,0,0,0,0,0,0,{kettle},0,{issues}"


def write(folder, rows, name="CLEAN_House2.csv"):
    path = folder / name
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METERVEIL_CACHE", str(tmp_path / "cache"))


def test_every_house_of_the_release_has_at_most_nine_appliances():
    assert list(REFIT_APPLIANCES) == [*range(1, 14), *range(15, 22)]
    assert {len(names.split()) for names in REFIT_APPLIANCES.values()} == {6, 9}


def test_appliances_of_one_kind_are_numbered_and_unused_columns_left_out():
    assert list(appliance_columns(4))[:5] == [
        "fridge_1",
        "freezer",
        "fridge_2",
        "washing_machine_1",
        "washing_machine_2",
    ]
    assert appliance_columns(12) == {
        "fridge": "Appliance1",
        "tv_1": "Appliance2",
        "microwave": "Appliance3",
        "kettle": "Appliance4",
        "toaster": "Appliance5",
        "tv_2": "Appliance6",
    }


def test_eight_second_rows_become_minute_means_of_named_appliances(tmp_path):
    rows = [row(START + 8 * n, aggregate=300 + n % 2, kettle=2000 * (n >= 30)) for n in range(60)]
    home = read_refit(write(tmp_path, rows))
    assert home.name == "REFIT house_2"
    assert list(home.appliances_w) == ["fridge", "kettle"]
    assert home.appliances_w["kettle"].tolist() == [0, 0, 0, 0, 2000, 2000, 2000, 2000]
    np.testing.assert_allclose(home.aggregate_w[:4], [300.5, 300 + 3 / 7, 300.5, 300 + 4 / 7])


def test_a_column_of_zeros_is_not_known(tmp_path):
    path = write(tmp_path, [row(START), row(START + 60)])
    home = read_refit(path)
    assert list(home.appliances_w) == ["fridge"]
    assert "kettle: zero throughout, so unknown: dropped" in home.notes
    with pytest.raises(InputError, match="kettle is zero throughout, so it is unknown"):
        read_refit(path, appliances=["kettle"])


def test_flagged_rows_are_kept_and_counted(tmp_path):
    home = read_refit(write(tmp_path, [row(START, 300, 2000, issues=1), row(START + 60, 2500, 2000)]))
    assert home.aggregate_w.tolist() == [300, 2500]
    assert any("1 of 2 rows are flagged" in note for note in home.notes)


def test_stamps_are_utc_and_days_are_british(tmp_path):
    summer = int(pd.Timestamp("2014-06-01", tz="Europe/London").timestamp())
    home = read_refit(write(tmp_path, [row(summer + 60 * n) for n in range(1440)]))
    assert home.days() == [date(2014, 6, 1)]


def test_the_aggregate_may_be_the_sum_of_the_submeters(tmp_path):
    home = read_refit(write(tmp_path, [row(START, 500, 100)]), aggregate="submeters")
    assert home.aggregate_w.tolist() == [190.0]
    assert "aggregate is the sum of the sub-meters" in home.notes


def test_a_folder_needs_a_house_where_it_has_several(tmp_path):
    write(tmp_path, [row(START)])
    assert read_refit(tmp_path).name == "REFIT house_2"
    write(tmp_path, [row(START)], "CLEAN_House15.csv")
    with pytest.raises(InputError, match=r"has several houses \(house_2, house_15\); name one"):
        read_refit(tmp_path)
    assert read_refit(tmp_path, house=15).name == "REFIT house_15"
    with pytest.raises(InputError, match="has no house_3; it has house_2, house_15"):
        read_refit(tmp_path, house=3)


@pytest.mark.parametrize(
    ("name", "house", "message"),
    [
        ("CLEAN_House14.csv", None, "REFIT has no house 14; it has 1, 2, 3"),
        ("CLEAN_House2.csv", 3, "is house 2, not 3"),
        ("mine.csv", None, "its house is unknown"),
    ],
)
def test_a_house_that_is_not_clear_is_asked_for(tmp_path, name, house, message):
    with pytest.raises(InputError, match=message):
        read_refit(write(tmp_path, [row(START)], name), house)


def test_an_unknown_appliance_lists_those_of_the_house(tmp_path):
    with pytest.raises(InputError, match="REFIT house_2 has no oven; it has fridge, washing_machine"):
        read_refit(write(tmp_path, [row(START)]), appliances=["oven"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (HEADER + "\n", "has a header but no rows"),
        ("a,b\n1,2\n", "has no column Aggregate"),
        ("\n".join([HEADER, row(START), row(START + 60, "oops"), ""]), r"Aggregate, row 2: 'oops' is not a number"),
        ("\n".join([HEADER, row(START), row(START + 60).replace(str(START + 60), ""), ""]), "Unix, row 2 has no stamp"),
        ("\n".join([HEADER, row(START, 2_000_000), ""]), "more than a home can draw"),
        ("\n".join([HEADER, row(START, ""), ""]), "Aggregate: no readings"),
        ("\n".join([HEADER, "1,2,3", ""]), "not a table of 13 columns"),
    ],
)
def test_a_bad_file_gets_one_clear_line(tmp_path, text, message):
    path = tmp_path / "CLEAN_House2.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_refit(path)
    assert "\n" not in str(caught.value)


def test_missing_paths_are_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_refit(tmp_path / "CLEAN_House2.csv")
    with pytest.raises(InputError, match=r"has no CLEAN_House<N>\.csv"):
        read_refit(tmp_path, house=2)


def test_the_real_house_has_the_coverage_and_gaps_that_its_description_states(real_data):
    home = read_refit(real_data / "refit", house=2)
    assert list(home.appliances_w) == ["washing_machine", "dishwasher", "microwave", "kettle"]
    assert all(share == pytest.approx(0.993, abs=5e-4) for share in home.coverage().values())
    unknown = np.isnan(home.aggregate_w)
    edges = np.flatnonzero(np.diff(unknown.astype(int), prepend=0, append=0))
    utc = home.minutes.tz_convert("UTC")
    gaps = {utc[low].strftime("%m-%d %H:%M"): high - low for low, high in edges.reshape(-1, 2)}
    stated = {"03-10 18:31": 102, "03-21 15:37": 112, "04-08 14:32": 255, "04-18 13:53": 111}
    assert stated.items() <= gaps.items()
    assert sorted(set(gaps.values()) - set(stated.values())) == [45]
    assert any("1 of 87,214 rows are flagged" in note for note in home.notes)
