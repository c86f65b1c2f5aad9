"""Batteries, tariffs and libraries as users write them: what is accepted, and what each refusal says."""

import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.decoys import Library
from meterveil.core.tariff import PAPER_TARIFF, Bands
from meterveil.data import settings
from meterveil.errors import InputError

NOON = np.array([720])


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_without_a_file_and_options_the_battery_is_the_default_one():
    assert settings.battery() == Battery()


def test_a_battery_file_changes_only_what_it_says(tmp_path):
    path = write(tmp_path / "b.json", {"capacity_kwh": 5, "soc_min": 0.2})
    assert settings.battery(path) == Battery(capacity_kwh=5, soc_min=0.2)


def test_an_option_overrides_the_battery_file(tmp_path):
    path = write(tmp_path / "b.json", {"capacity_kwh": 5, "budget_kwh": 3})
    battery = settings.battery(path, capacity_kwh=6.0, budget_kwh=None)
    assert (battery.capacity_kwh, battery.budget_kwh) == (6.0, 3)


def test_null_in_a_battery_file_means_no_limit(tmp_path):
    path = write(tmp_path / "b.json", {"export_limit_w": None, "budget_kwh": None})
    battery = settings.battery(path)
    assert (battery.export_limit_w, battery.budget_kwh) == (float("inf"), float("inf"))


def test_what_a_summary_says_about_a_battery_reads_back_as_the_same_battery(tmp_path):
    battery = Battery(capacity_kwh=5, budget_kwh=float("inf"), charge_efficiency=0.95)
    path = write(tmp_path / "b.json", settings.battery_values(battery))
    assert settings.battery(path) == battery


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"capacity": 5}, "the key capacity is unknown; allowed are capacity_kwh, charge_w"),
        ({"capacity_kwh": "large"}, "capacity_kwh came as 'large'; it must be a number$"),
        ({"capacity_kwh": None}, "capacity_kwh came as None; it must be a number$"),
        ({"capacity_kwh": 10**400}, r"capacity_kwh came as 1000000000000000.*; it must be a number$"),
        ({"budget_kwh": "any"}, "budget_kwh came as 'any'; it must be a number, or null for no limit$"),
        ({"capacity_kwh": 0}, "battery capacity_kwh is 0"),
        ({"charge_w": 0, "discharge_w": 0}, "can do nothing: its power is 0 W"),
        (
            {"budget_kwh": 0},
            "can do nothing: its budget_kwh is 0 a day; give more, or no limit .null in a file",
        ),
        (
            {"soc_min": 0.5, "soc_max": 0.50001},
            "next to nothing: between soc_min 0.5 and soc_max 0.50001 lie",
        ),
        ({"soc_min": 0.9, "soc_max": 0.1}, "soc_min 0.9 is not below soc_max 0.1"),
        ([1], "holds no JSON object"),
        ("{", "is not JSON"),
    ],
)
def test_a_battery_file_is_refused_with_the_key_and_what_is_allowed(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        settings.battery(write(tmp_path / "b.json", content))


def test_a_battery_file_that_is_missing_or_no_text_is_named(tmp_path):
    with pytest.raises(InputError, match=r"^cannot read .*none\.json: No such file"):
        settings.battery(tmp_path / "none.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"cannot read .*b\.json"):
        settings.battery(tmp_path / "b.json")


def test_the_papers_tariff_and_a_flat_one_have_names():
    assert settings.tariff("paper") is PAPER_TARIFF
    assert settings.tariff("flat:0.25").price(NOON, NOON) == [0.25]


def test_bands_from_a_file_hold_from_their_start_and_over_midnight(tmp_path):
    bands = {"bands": [{"from": "06:30", "price": 0.3}, {"from": "23:00", "price": 0.1}]}
    tariff = settings.tariff(str(write(tmp_path / "t.json", bands)))
    minutes = np.array([0, 389, 390, 1379, 1380])
    assert tariff.price(minutes, minutes).tolist() == [0.1, 0.1, 0.3, 0.3, 0.1]
    assert settings.tariff_values(tariff) == bands


def test_half_hourly_prices_hold_from_their_time_in_utc(tmp_path):
    lines = "timestamp,price\n2024-01-31T00:00Z,0.1\n2024-01-31T01:30+01:00,0.2\n"
    tariff = settings.tariff(str(write(tmp_path / "t.csv", lines)))
    first = int(np.datetime64("2024-01-31T00:00", "m").astype(int))
    at = np.array([first, first + 29, first + 30, first + 59])
    assert tariff.price(at, at).tolist() == [0.1, 0.1, 0.2, 0.2]
    assert settings.tariff_values(tariff)["first"] == "2024-01-31T00:00:00+00:00"
    with pytest.raises(InputError, match="does not cover"):
        tariff.price(at + 60, at + 60)


@pytest.mark.parametrize("stamps", [("01/02/2024", "02/02/2024"), ("1706745600", "1706832000")])
def test_the_times_of_prices_are_read_as_those_of_a_household(tmp_path, stamps):
    lines = "".join(f"{stamp},0.{n}\n" for n, stamp in enumerate(stamps))
    tariff = settings.tariff(str(write(tmp_path / "t.csv", f"timestamp,price\n{lines}")))
    extent = settings.tariff_values(tariff)
    assert (extent["first"], extent["last"]) == ("2024-02-01T00:00:00+00:00", "2024-02-02T00:00:00+00:00")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.json", {"bands": []}, r"bands came as \[\]; it must be a list of bands such as"),
        ("t.json", {"bands": [7]}, r"bands\.0 came as 7; it must be an object such as"),
        (
            "t.json",
            {"bands": [{"from": "25:00", "price": 1}]},
            r"bands\.0\.from came as '25:00'; it must be a time from 00:00 to 23:59",
        ),
        ("t.json", {"bands": [{"from": "07:00"}]}, r"the key bands\.0\.price is missing; allowed are from"),
        ("t.json", {"bands": [{"from": "07:00", "price": "1"}]}, "came as '1'; it must be a number$"),
        ("t.json", {"bands": [{"from": "07:00", "price": 1, "cost": 2}]}, "allowed are from, price"),
        ("t.json", {"band": []}, "allowed are bands"),
        (
            "t.json",
            {"bands": [{"from": "07:00", "price": 1}, {"from": "06:00", "price": 2}]},
            r"t\.json: tariff bands start at",
        ),
        ("t.csv", "time,price\n2024-01-31,1\n", "has the columns time, price; it needs timestamp,price"),
        ("t.csv", "timestamp,price\nyesterday,1\n", "row 1: 'yesterday' is not a stamp; write 2024-01-31"),
        ("t.csv", "timestamp,price\n2024-01-31,dear\n", "price, row 1: 'dear' is not a number"),
        (
            "t.csv",
            "timestamp,price\n,1\n2024-01-31,1\n",
            "timestamp, row 1 is empty; give every price its time",
        ),
        ("t.csv", "timestamp,price\n2024-01-31,1\n,1\n", "timestamp, row 2 is empty"),
        ("t.csv", "timestamp,price\n", "no stamps"),
        ("t.csv", "timestamp,price\n2024-01-31,\n", "finite prices"),
        ("t.csv", "", "is empty"),
        ("t.csv", "timestamp,price\n2024-01-31,1\n2024-01-30,1\n", "increasing times"),
    ],
)
def test_a_tariff_file_is_refused_with_what_is_wrong(tmp_path, name, content, words):
    with pytest.raises(InputError, match=words):
        settings.tariff(str(write(tmp_path / name, content)))


@pytest.mark.parametrize("text", ["cheap", "flat", "tariff.txt"])
def test_an_unknown_tariff_lists_the_known_forms(text):
    with pytest.raises(InputError, match="allowed is paper, flat:PRICE"):
        settings.tariff(text)


@pytest.mark.parametrize("text", ["flat:", "flat:dear", "flat:nan"])
def test_a_flat_tariff_needs_a_number(text):
    with pytest.raises(InputError, match="price"):
        settings.tariff(text)


def test_the_library_that_ships_is_always_the_same():
    library = settings.library()
    assert library.digest() == settings.library().digest()
    assert library.source == "synthetic"
    assert library.size == 10


def test_a_library_is_read_back_from_its_file(tmp_path):
    library = Library.of([("kettle", [2000.0, 1500.0])], source="mine")
    path = write(tmp_path / "l.json", library.to_json())
    assert settings.library(path).digest() == library.digest()


def test_a_file_that_is_no_library_is_named(tmp_path):
    with pytest.raises(InputError, match=r"l\.json: a signature library must be"):
        settings.library(write(tmp_path / "l.json", {"format": "other"}))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"capacity_kwh": ' + "9" * 5_000 + "}"])
@pytest.mark.parametrize(
    "read", [settings.battery, settings.library, lambda path: settings.tariff(str(path))]
)
def test_json_beyond_all_measure_is_refused_in_one_line(tmp_path, text, read):
    with pytest.raises(InputError, match=r"x\.json.* JSON.* (depth|digits)"):
        read(write(tmp_path / "x.json", text))


@pytest.mark.parametrize(
    ("name", "watts"), [("kettle", "9" * 400), ("\\ud800", "9"), ("kettle", '"many"'), ("kettle", "[[9]]")]
)
def test_a_library_that_cannot_be_written_again_is_refused(tmp_path, name, watts):
    row = f'{{"name": "{name}", "watts": [{watts}]}}'
    text = f'{{"format": "meterveil-signatures-1", "source": "x", "signatures": [{row}]}}'
    with pytest.raises(InputError, match=r"l\.json: .*signature"):
        settings.library(write(tmp_path / "l.json", text))


def examples():
    """Read the examples out of the page, by the option that takes them."""
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return [
        re.search(r"`--(\w+) ([\w.-]+)`.*?```\w+\n(.*?)```", text, re.DOTALL).groups() for text in sections
    ]


def test_the_examples_of_the_documentation_load(tmp_path):
    read = {
        "battery": settings.battery,
        "tariff": lambda path: settings.tariff(str(path)),
        "library": settings.library,
    }
    loaded = [read[option](write(tmp_path / name, text)) for option, name, text in examples()]
    battery, bands, series, library = loaded
    assert battery == Battery()
    assert (bands.starts, bands.prices) == ((30, 330, 960, 1140), (0.09, 0.28, 0.39, 0.28))
    assert np.diff(series.starts).tolist() == [30, 30, 30]
    assert library.names == ("kettle", "toaster")


def test_the_documentation_names_every_key_of_a_battery():
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    assert all(f"`{field.name}`" in page for field in fields(Battery))


def test_a_tariff_of_another_kind_is_described_by_its_name():
    class Free:
        def price(self, minute_of_day, utc_minute):
            return np.zeros(len(minute_of_day))

    assert settings.tariff_values(Free()) == {"kind": "Free"}
    assert isinstance(settings.tariff("flat:1"), Bands)
