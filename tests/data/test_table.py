from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from privileges import without_privileges

from meterveil.data.table import read_table
from meterveil.errors import InputError

START = pd.Timestamp("2024-01-10", tz="UTC")


@pytest.fixture(autouse=True)
def computer_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")


def write(folder: Path, text: str, name: str = "home.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def minutes(count: int, start: pd.Timestamp = START, step: str = "min") -> pd.DatetimeIndex:
    return pd.date_range(start, periods=count, freq=step)


def rows(stamps, values, header="time,power_w", separator=",") -> str:
    lines = [separator.join(str(cell) for cell in row) for row in zip(stamps, values, strict=True)]
    return "\n".join([header, *lines, ""])


def unix(index: pd.DatetimeIndex) -> list[int]:
    return [int(stamp.timestamp()) for stamp in index]


def test_minutes_come_back_as_they_were(tmp_path):
    stamps = [stamp.isoformat() for stamp in minutes(3)]
    home = read_table(write(tmp_path, rows(stamps, [100, 250.5, 80])))
    assert home.aggregate_w.tolist() == [100, 250.5, 80]
    assert home.minutes[0] == START
    assert (home.name, home.timezone, home.units["aggregate"]) == ("home", "UTC", "W")
    assert home.appliances_w == {}


def test_six_second_readings_become_minute_means(tmp_path):
    stamps = unix(minutes(20, step="6s"))
    home = read_table(write(tmp_path, rows(stamps, [100.0] * 10 + [200.0] * 5 + [400.0] * 5)))
    assert home.aggregate_w.tolist() == [100.0, 300.0]


@pytest.mark.parametrize("factor", [1, 1_000, 1_000_000, 1_000_000_000])
def test_unix_stamps_of_any_fineness_are_told_apart(tmp_path, factor):
    stamps = [second * factor for second in unix(minutes(5))]
    home = read_table(write(tmp_path, rows(stamps, range(100, 105), "unix,watts")))
    assert home.minutes[0] == START
    assert home.aggregate_w.tolist() == [100, 101, 102, 103, 104]


@pytest.mark.parametrize(
    ("pattern", "header"),
    [
        ("%Y-%m-%d %H:%M:%S", "Timestamp,Power (W)"),
        ("%Y/%m/%d %H:%M", "DateTime,W"),
        ("%d/%m/%Y %H:%M", "date,consumption_w"),
        ("%d.%m.%Y %H:%M:%S", "Zeit,watts"),
        ("%Y-%m-%dT%H:%M:%SZ", "utc,watts"),
    ],
)
def test_dates_are_read_in_the_ways_people_write_them(tmp_path, pattern, header):
    index = minutes(1440 * 14)
    path = write(tmp_path, rows(index.strftime(pattern), np.arange(len(index)) % 700 + 100, header))
    home = read_table(path)
    assert home.minutes[0] == START
    assert len(home.minutes) == len(index)
    assert home.coverage() == {"aggregate": 1.0}


@pytest.mark.parametrize(
    ("stamps", "first", "note"),
    [
        (["01/30/2024 00:00", "01/31/2024 00:00"], "2024-01-30", "month/day/year"),
        (["02.03.2024 00:00", "05.04.2024 00:00"], "2024-03-02", ""),
        (["02/03/2024 00:00", "02/03/2024 00:01"], "2024-03-02", "day/month/year"),
    ],
)
def test_the_order_of_a_date_is_found_by_its_numbers_and_dots(tmp_path, stamps, first, note):
    home = read_table(write(tmp_path, rows(stamps, [200, 300])), allow_coarse=True)
    assert home.minutes[0] == pd.Timestamp(first, tz="UTC")
    assert any("dates are read as" in text for text in home.notes) == bool(note)
    assert any(note in text for text in home.notes)


@pytest.mark.parametrize(
    ("pattern", "order"),
    [("%m/%d/%Y %I:%M %p", "month/day/year"), ("%d/%m/%Y %H:%M", "day/month/year"), ("%m-%d-%y %H:%M", "month")],
)
def test_days_up_to_the_twelfth_are_read_in_the_order_in_which_they_follow_each_other(tmp_path, pattern, order):
    index = minutes(3 * 1440, pd.Timestamp("2024-01-02", tz="UTC"))
    home = read_table(write(tmp_path, rows(index.strftime(pattern), [200] * len(index))))
    assert (home.minutes[0], home.minutes[-1]) == (index[0], index[-1])
    assert any(f"dates are read as {order}" in note for note in home.notes)


def test_dates_that_follow_each_other_in_neither_order_are_asked_about(tmp_path):
    stamps = [f"0{day}/0{month}/2024 00:0{minute}" for day, month in ((1, 2), (4, 6)) for minute in (0, 1)]
    with pytest.raises(InputError, match=r"'01/02/2024 00:00' may begin with the day or the month"):
        read_table(write(tmp_path, rows(stamps, [200] * 4)))


def test_separate_columns_of_date_and_time_are_joined(tmp_path):
    text = "Date;Time;Global_active_power;Global_reactive_power;Voltage\n"
    text += "16/12/2006;17:24:00;4.216;0.418;234.840\n16/12/2006;17:25:00;?;0.436;233.630\n"
    text += "16/12/2006;17:26:00;5.374;0.498;233.290\n"
    home = read_table(write(tmp_path, text, "power.txt"), unit="kW", timezone="Europe/Paris")
    assert home.aggregate_w.tolist() == [4216.0, 4216.0, 5374.0]
    assert home.minutes[0] == pd.Timestamp("2006-12-16 17:24", tz="Europe/Paris")


@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y-%m-%d %H:%M:%S.250"])
def test_offsets_of_whole_hours_as_databases_write_them_cross_the_clock_change(tmp_path, pattern):
    index = minutes(120, pd.Timestamp("2024-03-31 00:30", tz="UTC")).tz_convert("Europe/London")
    stamps = [f"{stamp.strftime(pattern)}{stamp.strftime('%z')[:3]}" for stamp in index]
    home = read_table(write(tmp_path, rows(stamps, np.arange(120) + 100)), timezone="Europe/London")
    assert home.minutes[0] == index[0]
    assert home.aggregate_w.tolist() == list(range(100, 220))


def test_a_year_after_a_dash_is_no_offset(tmp_path):
    stamps = [stamp.strftime("%d-%m-%Y") for stamp in minutes(3, pd.Timestamp("2024-01-30"), "D")]
    home = read_table(write(tmp_path, rows(stamps, [100, 200, 300])), allow_coarse=True)
    assert home.days() == [date(2024, 1, 30), date(2024, 1, 31), date(2024, 2, 1)]


@pytest.mark.parametrize(
    ("stamps", "timezone"),
    [
        (["2024-06-01 00:00", "2024-06-01 00:01"], "America/New_York"),
        (["1717200000", "1717200060"], "America/New_York"),
        (["2024-06-01T00:00+02:00", "2024-06-01T00:01+02:00"], "UTC+02:00"),
        (["2024-06-01T00:00-0330", "2024-06-01T00:01-0330"], "UTC-03:30"),
        (["2024-06-01T00:00Z", "2024-06-01T00:01Z"], "UTC"),
        (["2024-03-31T01:59+01:00", "2024-03-31T03:00+02:00"], "Europe/Berlin"),
        (["2024-11-03T01:59-04:00", "2024-11-03T01:00-05:00"], "America/New_York"),
        (["2024-04-30T00:00+03:30", "2024-04-30T00:01+04:30"], "UTC+03:30"),
    ],
)
def test_days_are_those_of_the_offsets_in_the_stamps_else_of_the_computer(tmp_path, monkeypatch, stamps, timezone):
    monkeypatch.setenv("TZ", "America/New_York")
    path = write(tmp_path, rows(stamps, [200, 300]))
    home = read_table(path, allow_coarse=True)
    assert home.timezone == timezone
    assert any(f"time zone: {timezone}" in note for note in home.notes)
    assert read_table(path, timezone="Asia/Tokyo", allow_coarse=True).timezone == "Asia/Tokyo"


def test_a_day_of_stamps_with_an_offset_begins_at_midnight_of_that_offset(tmp_path):
    index = pd.date_range("2024-01-10", "2024-01-12 23:59", freq="min", tz="Europe/Berlin")
    home = read_table(write(tmp_path, rows([stamp.isoformat() for stamp in index], [300] * len(index))))
    assert (home.timezone, len(home.days())) == ("UTC+01:00", 3)
    assert len(home.day(date(2024, 1, 11)).minutes) == 1440


def test_the_repeated_hour_of_autumn_is_told_apart_by_order(tmp_path):
    index = minutes(240, pd.Timestamp("2024-10-26 23:00", tz="UTC")).tz_convert("Europe/London")
    path = write(tmp_path, rows(index.strftime("%Y-%m-%d %H:%M"), np.arange(240) + 100))
    home = read_table(path, timezone="Europe/London")
    assert home.aggregate_w.tolist() == list(range(100, 340))
    assert home.notes == ()


def test_an_autumn_hour_without_its_repetition_does_not_spoil_another_year(tmp_path):
    years = [pd.date_range(f"{day} 23:00", periods=180, freq="min", tz="UTC") for day in ("2023-10-28", "2024-10-26")]
    index = years[0].append(years[1]).tz_convert("Europe/London")
    keep = ~((index.year == 2023) & (index >= years[0][120]))
    index = index[keep]
    path = write(tmp_path, rows(index.strftime("%Y-%m-%d %H:%M"), np.arange(len(index)) + 100))
    home = read_table(path, timezone="Europe/London")
    assert home.minutes[-1] == index[-1]
    assert np.nansum(home.aggregate_w) == sum(range(100, 100 + len(index)))
    assert any("60 stamps in the hour that the clocks repeat" in note for note in home.notes)


def test_a_table_that_runs_backwards_through_autumn_is_told_apart_too(tmp_path):
    index = minutes(240, pd.Timestamp("2024-10-26 23:00", tz="UTC")).tz_convert("Europe/London")[::-1]
    path = write(tmp_path, rows(index.strftime("%Y-%m-%d %H:%M"), np.arange(240)[::-1] + 100))
    home = read_table(path, timezone="Europe/London")
    assert home.aggregate_w.tolist() == list(range(100, 340))


def test_an_autumn_hour_that_comes_only_once_is_summer_time_and_said(tmp_path):
    index = pd.date_range("2024-10-27 00:30", "2024-10-27 01:30", freq="min")
    path = write(tmp_path, rows(index.strftime("%Y-%m-%d %H:%M"), [300] * len(index)))
    home = read_table(path, timezone="Europe/London")
    assert home.minutes[-1] == pd.Timestamp("2024-10-27 00:30", tz="UTC")
    assert any("31 stamps in the hour that the clocks repeat" in note for note in home.notes)


def test_the_hour_that_spring_skips_is_put_forward_and_said(tmp_path):
    index = pd.date_range("2024-03-31 00:30", "2024-03-31 01:59", freq="min")
    path = write(tmp_path, rows(index.strftime("%Y-%m-%d %H:%M"), np.arange(90) + 100))
    home = read_table(path, timezone="Europe/London")
    assert home.aggregate_w.tolist() == list(range(100, 190))
    assert home.minutes[-1] == pd.Timestamp("2024-03-31 02:59", tz="Europe/London")
    assert any("60 stamps in the hour that the clocks skip" in note for note in home.notes)


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), ("\t", ","), (";", "."), ("\t", "."), (",", ".")])
def test_separators_and_decimal_signs_are_found(tmp_path, separator, decimal):
    values = [f"{value:.2f}".replace(".", decimal) for value in (100.25, 250.5, 80.75)]
    home = read_table(write(tmp_path, rows(unix(minutes(3)), values, f"time{separator}watts", separator)))
    assert home.aggregate_w.tolist() == [100.25, 250.5, 80.75]


@pytest.mark.parametrize("blank", ["\n", "  \n\r\n\n"])
def test_blank_lines_before_the_header_are_skipped(tmp_path, blank):
    home = read_table(write(tmp_path, blank + rows(unix(minutes(3)), [100, 250, 80])))
    assert home.aggregate_w.tolist() == [100, 250, 80]


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("time,power_kw", None),
        ("time,Power (kW)", None),
        ("time,powerKW", None),
        ("time,kilowatts", None),
        ("time,power_w", "kw"),
        ("time,power", "kW"),
    ],
)
def test_a_unit_is_the_given_one_or_that_of_the_name(tmp_path, header, unit):
    home = read_table(write(tmp_path, rows(unix(minutes(3)), [0.1, 2.5, 0.08], header)), unit=unit)
    assert home.aggregate_w.tolist() == [100.0, 2500.0, 80.0]


def test_a_doubtful_or_assumed_unit_is_noted(tmp_path):
    doubtful = read_table(write(tmp_path, rows(unix(minutes(3)), [0.1, 2.5, 0.08], "time,power_w")))
    assert any("if these are kW" in note for note in doubtful.notes)
    assumed = read_table(write(tmp_path, rows(unix(minutes(3)), [100, 2500, 80], "time,power")))
    assert any("no unit given" in note for note in assumed.notes)


@pytest.mark.parametrize(
    ("values", "header", "options", "message"),
    [
        ([0.1, 2.5, 0.08], "time,power", {}, r'never exceeds 2\.5, too little for watts.*unit="kW"'),
        ([100, 2500, 80], "time,power_kw", {}, "power_kw reaches 2,500 kW, more than a home can draw"),
        ([100, 2500, 80], "time,power", {"unit": "MW"}, "'MW' is not known; give one of W, kW"),
        (range(5000, 5060), "time,value", {}, r'only ever rises.*unit="kWh"'),
        ([100, 200, 300], "time,power_w", {"timezone": "Mars/Base"}, "'Mars/Base' is not a time zone"),
        ([100, 200, 300], "time,power_w", {"power": "watts"}, "has no column .*; it has time, power_w"),
        ([100, 200, 300], "time,power_w", {"timestamp": "when"}, "has no column"),
        ([100, 200, 300], "time,power_w", {"appliances": ["kettle"]}, "has no column"),
    ],
)
def test_a_wrong_or_missing_option_is_named(tmp_path, values, header, options, message):
    path = write(tmp_path, rows(unix(minutes(len(values))), values, header))
    with pytest.raises(InputError, match=message):
        read_table(path, **options)


def test_a_register_becomes_the_power_between_its_readings(tmp_path):
    watts = np.repeat([120.0, 2400.0, 600.0], 40)
    register = 5000.0 + np.concatenate([[0.0], np.cumsum(watts) / 60_000])
    home = read_table(write(tmp_path, rows(unix(minutes(121)), register, "time,total_kWh")))
    np.testing.assert_allclose(home.aggregate_w, watts, atol=1e-3)


def test_a_register_with_the_newest_reading_first_is_sorted_before_it_is_judged(tmp_path):
    register = 5000.0 + np.arange(120) * 0.01
    newest_first = unix(minutes(120))[::-1], register[::-1]
    home = read_table(write(tmp_path, rows(*newest_first, "time,total_kWh")))
    np.testing.assert_allclose(home.aggregate_w, 600.0, atol=1e-3)
    with pytest.raises(InputError, match="only ever rises"):
        read_table(write(tmp_path, rows(*newest_first, "time,value")))


@pytest.mark.parametrize("mains", ["mains_kwh,heater_kwh", "mains_w,heater_kwh"])
def test_a_submeter_register_that_stands_still_is_an_appliance_that_is_off(tmp_path, mains):
    readings = 5000.0 + np.arange(60) * 0.01
    values = [f"{reading:.2f},812.3" for reading in readings]
    home = read_table(write(tmp_path, rows(unix(minutes(60)), values, f"time,{mains}")), appliances="all")
    assert home.appliances_w["heater_kwh"][:59].tolist() == [0.0] * 59


def test_a_submeter_counts_as_the_mains_do_where_its_level_says_nothing(tmp_path):
    counts = ["0.5" if minute < 40 else "0.6" for minute in range(60)]
    for header, mains_kwh, expected_w in (
        ("a register", 5000.0 + np.arange(60) * 0.01, 100 * 60.0),
        ("intervals", np.tile([0.7, 0.9], 30), 600 * 60.0),
    ):
        values = [f"{mains:.2f},{count}" for mains, count in zip(mains_kwh, counts, strict=True)]
        path = write(tmp_path, rows(unix(minutes(60)), values, "time,mains_kwh,heater_kwh"))
        heater_w = read_table(path, appliances="all").appliances_w["heater_kwh"]
        assert np.nanmax(heater_w) == pytest.approx(expected_w), header


@pytest.mark.parametrize("level_kwh", [0.0, 12_345.0])
def test_a_register_of_a_few_readings_is_recognised(tmp_path, level_kwh):
    register = level_kwh + np.arange(18) * 0.02
    home = read_table(write(tmp_path, rows(unix(minutes(18)), register, "time,energy_kwh")))
    np.testing.assert_allclose(home.aggregate_w, 1200.0, atol=1e-3)


def test_an_appliance_used_once_is_no_register_that_was_reset(tmp_path):
    values = [f"500,{3 if minute == 30 else 0}" for minute in range(60)]
    home = read_table(write(tmp_path, rows(unix(minutes(60)), values, "time,mains_w,kettle_wh")), appliances="all")
    assert home.appliances_w["kettle_wh"].tolist() == [0.0] * 30 + [180.0] + [0.0] * 29


def test_a_register_read_off_the_minute_conserves_energy(tmp_path):
    rng = np.random.default_rng(3)
    index = minutes(600, START + pd.Timedelta(seconds=17), "10s")
    register = np.cumsum(rng.integers(0, 9, len(index))).astype(float)
    home = read_table(write(tmp_path, rows(unix(index), register, "time,energy_Wh")))
    first, last = home.minutes[0], home.minutes[-1] + pd.Timedelta(minutes=1)
    seconds = [(stamp - index[0]).total_seconds() for stamp in (first, last)]
    expected = np.diff(np.interp(seconds, np.arange(600) * 10.0, register))[0]
    assert home.aggregate_w.sum() / 60 == pytest.approx(expected)


def test_a_register_that_resets_loses_those_minutes_only_and_says_so(tmp_path):
    register = 900 + np.arange(60) * 0.01
    register[40:] = np.arange(20) * 0.01
    path = write(tmp_path, rows(unix(minutes(60)), register, "time,meter_kwh"))
    home = read_table(write(tmp_path, path.read_text(), "home2.csv"))
    assert any("register fell 1 times" in note for note in home.notes)
    np.testing.assert_allclose(home.aggregate_w, 600.0, atol=1e-6)


def test_a_register_says_how_finely_it_counts(tmp_path):
    register = np.floor(np.arange(60) * 5.3) / 1000
    home = read_table(write(tmp_path, rows(unix(minutes(60)), register, "time,total_kwh")))
    assert any("moves by 5 Wh at least: a minute is known to about 300 W" in note for note in home.notes)


def test_energy_of_each_interval_becomes_power(tmp_path):
    values = np.tile([0.002, 0.04], 30)
    home = read_table(write(tmp_path, rows(unix(minutes(60)), values, "time,consumption_kwh")))
    np.testing.assert_allclose(home.aggregate_w, np.tile([120.0, 2400.0], 30))


def test_half_hours_are_refused_unless_asked_for(tmp_path):
    path = write(tmp_path, rows(unix(minutes(48, step="30min")), np.tile([0.1, 0.5], 24), "time,kWh"))
    with pytest.raises(InputError, match=r"readings are 1800 s apart; a minute or less is needed.*meterveil audit"):
        read_table(path)
    home = read_table(path, allow_coarse=True)
    assert home.coverage() == {"aggregate": 1.0}
    assert home.days() == [date(2024, 1, 10)]
    np.testing.assert_allclose(home.aggregate_w, np.tile(np.repeat([200.0, 1000.0], 30), 24))
    assert any("appliances are blurred" in note for note in home.notes)


def test_submeters_are_read_when_they_are_named(tmp_path):
    text = "time,mains_w,kettle_kw,fridge,temperature\n"
    text += "".join(f"{second},2000,1.5,90,21\n" for second in unix(minutes(3)))
    path = write(tmp_path, text)
    assert read_table(path).appliances_w == {}
    some = read_table(path, appliances=["kettle_kw"])
    assert {name: watts.tolist() for name, watts in some.appliances_w.items()} == {"kettle_kw": [1500.0] * 3}
    every = read_table(path, appliances="all")
    assert list(every.appliances_w) == ["kettle_kw", "fridge"]
    assert every.appliances_w["fridge"].tolist() == [90.0] * 3


def test_each_submeter_has_the_unit_of_its_own_column(tmp_path):
    values = ["2000,0.1,50,90"] * 3
    path = write(tmp_path, rows(unix(minutes(3)), values, "time,mains_w,heater_kva,pump_va,fridge"))
    home = read_table(path, appliances="all")
    assert home.units == {"aggregate": "W", "heater_kva": "VA", "pump_va": "VA", "fridge": "W"}
    assert home.appliances_w["heater_kva"].tolist() == [100.0] * 3


def test_a_negative_submeter_is_refused_and_feed_in_is_noted(tmp_path):
    text = "time,mains_w,kettle\n" + "".join(f"{second},-300,-100\n" for second in unix(minutes(3)))
    path = write(tmp_path, text)
    assert any("feed-in" in note for note in read_table(path).notes)
    with pytest.raises(InputError, match="kettle: -100 W is negative"):
        read_table(path, appliances="all")


def test_parquet_is_read_like_text(tmp_path):
    index = minutes(3).tz_convert("Europe/London")
    path = tmp_path / "home.parquet"
    pq.write_table(pa.table({"when": pa.array(index), "power_kw": [0.1, 2.5, 0.08]}), path)
    home = read_table(path)
    assert home.aggregate_w.tolist() == [100.0, 2500.0, 80.0]
    assert (home.minutes[0], home.timezone) == (START, "Europe/London")


def test_empty_cells_and_logger_words_are_gaps(tmp_path):
    values = ["100", "", "unavailable", "unknown", "NaN", "200"]
    home = read_table(write(tmp_path, rows(unix(minutes(6)), values)))
    np.testing.assert_array_equal(home.aggregate_w, [100, np.nan, np.nan, np.nan, np.nan, 200])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; give a file with readings"),
        ("\n\n", "is empty; give a file with readings"),
        ("time,power_w\n", "has a header but no rows"),
        ("1704844800,100\n1704844860,200\n", "has no header"),
        ("2024-01-10 00:00,100\n2024-01-10 00:01,200\n", "has no header: its first line is 2024-01-10 00:00,100"),
        ("10.01.2024 00:00;100,5\n10.01.2024 00:01;?\n", "add a line that names the columns"),
        ("time,power_w\n1704844800,100\n1704844860,abc\n", r"power_w, row 2: 'abc' is not a number"),
        ("time,power_w\n2024-01-10,100\nyesterday,200\n", r"time, row 2: 'yesterday' is not a stamp"),
        ("time,power_w\nmonday,100\ntuesday,200\n", r"time, row 1: 'monday' is not a stamp"),
        ("time,power_w\n1704844800,\n1704844860,\n", "power_w is all gaps"),
        ("time,power_w\n,100\n,200\n", "no stamps"),
        ("time,power_w\n12,100\n72,200\n", "is not a stamp between the years 1990 and 2100"),
        ("a,b\n1,2\n3,4\n", "no column of stamps among a, b; name it: timestamp="),
        ("time,a,b\n1704844800,2,3\n", r"not clear among a, b; name it: power="),
        ("time,power_w,power_w\n1704844800,2,3\n", "two columns named power_w"),
        ("time,power_w\n1704844800,2,3\n", "not a table of 2 columns"),
    ],
)
def test_a_bad_table_gets_one_clear_line(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_missing_files_folders_and_binaries_are_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    noise = np.random.default_rng(0).bytes(5000)
    (tmp_path / "noise.csv").write_bytes(noise)
    with pytest.raises(InputError, match="is not text"):
        read_table(tmp_path / "noise.csv")
    (tmp_path / "noise.parquet").write_bytes(noise)
    with pytest.raises(InputError, match="is not a Parquet file"):
        read_table(tmp_path / "noise.parquet")


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    path = write(tmp_path, rows(unix(minutes(3)), [100, 200, 300]))
    path.chmod(0)
    with without_privileges(), pytest.raises(InputError, match="may not be read"):
        read_table(path)


def test_an_export_of_several_sensors_is_refused_and_one_of_a_single_sensor_is_read(tmp_path):
    path = tmp_path / "history.csv"
    rows = [
        f"sensor.{name},{watts},2024-05-01T00:{minute:02d}:00Z"
        for minute in range(10)
        for name, watts in (("house_power", 400 + minute), ("solar_power", 90))
    ]
    path.write_text("\n".join(["entity_id,state,last_changed", *rows]))
    with pytest.raises(InputError, match=r"entity_id lists 2 sources \(sensor.house_power, sensor.solar_power\)"):
        read_table(path, unit="W")
    path.write_text("\n".join(["entity_id,state,last_changed", *rows[::2]]))
    assert read_table(path, unit="W").aggregate_w.tolist() == [400.0 + minute for minute in range(10)]


def test_columns_of_appliances_that_are_not_asked_for_are_named(tmp_path):
    stamps = minutes(60)
    text = "\n".join(["time,power_w,kettle", *(f"{stamp},200,0" for stamp in stamps), ""])
    path = write(tmp_path, text)
    [note] = [note for note in read_table(path).notes if "not read as appliances" in note]
    assert "kettle" in note
    assert 'appliances="all"' in note
    assert not any("not read as appliances" in note for note in read_table(path, appliances="all").notes)
