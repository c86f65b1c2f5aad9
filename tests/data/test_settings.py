"""Batteries, tariffs and libraries as users write them: what is accepted, and what each refusal says."""

import json
import re
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from meterveil.core.battery import Battery
from meterveil.core.tariff import PAPER_TARIFF, Bands
from meterveil.data import settings
from meterveil.data.table import read_table
from meterveil.errors import InputError

NOON = np.array([720])


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_battery_is_the_default_changed_by_a_file_and_then_by_options(tmp_path):
    assert settings.battery() == Battery()
    path = write(tmp_path / "b.json", {"capacity_kwh": 5, "soc_min": 0.2, "budget_kwh": 3})
    assert settings.battery(path) == Battery(capacity_kwh=5, soc_min=0.2, budget_kwh=3)
    changed = settings.battery(path, capacity_kwh=6.0, budget_kwh=None)
    assert changed == Battery(capacity_kwh=6, soc_min=0.2, budget_kwh=3)


def test_null_means_no_limit_and_a_battery_reads_back_as_it_was_written(tmp_path):
    battery = Battery(capacity_kwh=5, budget_kwh=float("inf"), charge_efficiency=0.95)
    values = settings.battery_values(battery)
    assert values["budget_kwh"] is None
    assert settings.battery(write(tmp_path / "b.json", values)) == battery


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"capacity": 5}, r"b\.json: capacity: .*the keys are capacity_kwh, charge_w"),
        ({"capacity_kwh": "large"}, "capacity_kwh: .*valid number .*'large'"),
        ({"capacity_kwh": None}, "capacity_kwh: .*valid number"),
        ({"capacity_kwh": 10**400}, "capacity_kwh is inf"),
        ({"capacity_kwh": 0}, "battery capacity_kwh is 0"),
        ({"charge_w": 0, "discharge_w": 0}, "power is 0 W"),
        ({"budget_kwh": 0}, "budget_kwh is 0 a day"),
        ({"soc_min": 0.5, "soc_max": 0.50001}, "next to nothing"),
        ({"soc_min": 0.9, "soc_max": 0.1}, "soc_min 0.9 is not below soc_max 0.1"),
        ([1], "should be an object"),
        ("{", "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ('{"capacity_kwh": ' + "9" * 5_000 + "}", "invalid JSON"),
    ],
)
def test_a_battery_file_is_refused_with_the_key_and_what_is_allowed(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        settings.battery(write(tmp_path / "b.json", content))


def test_a_battery_file_that_is_missing_or_not_text_is_named(tmp_path):
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    for name in ("none.json", "b.json"):
        with pytest.raises(InputError, match=rf"cannot read .*{name}"):
            settings.battery(tmp_path / name)


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
        ("t.json", {"bands": []}, "bands: .*at least 1"),
        ("t.json", {"bands": [7]}, r"bands\.0: .*object"),
        ("t.json", {"bands": [{"from": "25:00", "price": 1}]}, r"bands\.0\.from: .*'25:00'"),
        ("t.json", {"bands": [{"from": "07:00"}]}, r"bands\.0\.price: field required"),
        ("t.json", {"bands": [{"from": "07:00", "price": "1"}]}, "valid number"),
        ("t.json", {"bands": [{"from": "07:00", "price": 1, "cost": 2}]}, "the keys are from, price"),
        ("t.json", {"band": []}, "the keys are bands"),
        (
            "t.json",
            {"bands": [{"from": "07:00", "price": 1}, {"from": "06:00", "price": 2}]},
            r"t\.json: tariff bands start at",
        ),
        ("t.csv", "time,price\n2024-01-31,1\n", "has the columns time, price; it needs timestamp,price"),
        ("t.csv", "timestamp,price\nyesterday,1\n", "row 1: 'yesterday' is not a stamp"),
        ("t.csv", "timestamp,price\n2024-01-31,dear\n", "price, row 1: 'dear' is not a number"),
        ("t.csv", "timestamp,price\n2024-01-31,1\n,1\n", "timestamp, row 2 is empty"),
        ("t.csv", "timestamp,price\n", "no stamps"),
        ("t.csv", "timestamp,price\n2024-01-31,\n", r"t\.csv: .*finite prices"),
        ("t.csv", "", "is empty"),
        ("t.csv", "timestamp,price\n2024-01-31,1\n2024-01-30,1\n", "increasing times"),
        ("cheap", "", "allowed is paper, flat:PRICE"),
    ],
)
def test_a_tariff_file_is_refused_with_what_is_wrong(tmp_path, name, content, words):
    with pytest.raises(InputError, match=words):
        settings.tariff(str(write(tmp_path / name, content)))


@pytest.mark.parametrize("text", ["flat:", "flat:dear", "flat:nan"])
def test_a_flat_tariff_needs_a_number(text):
    with pytest.raises(InputError, match="price"):
        settings.tariff(text)


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
    return [re.search(r"`--(\w+) ([\w.-]+)`.*?```\w+\n(.*?)```", text, re.DOTALL).groups() for text in sections]


def test_the_examples_of_the_documentation_load(tmp_path):
    read = {"battery": settings.battery, "tariff": lambda path: settings.tariff(str(path)), "library": settings.library}
    read["on"] = partial(read_table, appliances="all")
    loaded = [read[option](write(tmp_path / name, text)) for option, name, text in examples()]
    battery, house, bands, series, library = loaded
    assert battery == Battery()
    assert (bands.starts, bands.prices) == ((30, 330, 960, 1140), (0.09, 0.28, 0.39, 0.28))
    assert np.diff(series.starts).tolist() == [30, 30, 30]
    assert library.names == ("kettle", "toaster")
    assert {name: watts.max() for name, watts in house.appliances_w.items()} == {"kettle_w": 2240.0, "TV (kW)": 90.0}


def test_the_documentation_names_every_key_of_a_battery():
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    assert all(f"`{field.name}`" in page for field in fields(Battery))


def test_a_tariff_of_another_kind_is_described_by_its_name():
    class Free:
        def price(self, minute_of_day, utc_minute):
            return np.zeros(len(minute_of_day))

    assert settings.tariff_values(Free()) == {"kind": "Free"}
    assert isinstance(settings.tariff("flat:1"), Bands)
