import hashlib
import json
from datetime import date

import numpy as np
import pandas as pd
import pytest

from meterveil.data import signatures as files
from meterveil.data.household import Household
from meterveil.data.protocols import LIBRARY_DAYS, UKDALE_EVALUATION_DAYS, on_threshold_w
from meterveil.data.signatures import (
    SUB_LIBRARIES,
    Collection,
    Signature,
    build,
    candidates,
    choose,
    find_events,
    ranked,
    sub_library,
)
from meterveil.data.splits import day_range
from meterveil.data.synthetic import decoy_library, suits_library
from meterveil.errors import InputError

DAYS = day_range(date(2013, 5, 21), date(2013, 5, 23))
BOIL_W = [900.0, 2400.0, 2410.0, 2390.0, 600.0]


def home(uses, name="kettle", days=2):
    """Build a household in which an appliance draws these watts from these minutes on."""
    minutes = pd.date_range("2013-05-21", periods=1440 * days, freq="min", tz="Europe/London")
    watts = np.full(len(minutes), 1.0)
    for start, use_w in uses.items():
        watts[start : start + len(use_w)] = use_w
    return Household("home", minutes, watts + 200.0, {name: watts, "fridge": np.full(len(minutes), 90.0)})


def use(name, watts, house=1):
    return Signature(name, tuple(watts), house, date(2013, 5, 21), "07:00")


def test_an_event_includes_the_partial_minutes_at_its_edges_but_no_standby():
    watts = np.array([1.0, 1.0, 300.0, 2300.0, 2300.0, 80.0, 1.0, 1.0, 1500.0, 1.0])
    assert find_events(watts, 1000.0) == [(2, 6), (8, 9)]


def test_an_event_whose_beginning_or_end_nobody_knows_is_left_out():
    nan = np.nan
    watts = np.array([2000.0, 1.0, nan, 2000.0, 1.0, 2000.0, nan, 1.0, 2000.0, 1.0, 2000.0])
    assert find_events(watts, 1000.0) == [(8, 9)]
    assert find_events(np.full(5, nan), 1000.0) == []


def test_candidates_say_when_they_were_recorded_and_a_fridge_is_none():
    (boil,) = candidates(home({1440 + 425: BOIL_W}), 2, DAYS)
    assert boil == Signature("kettle", tuple(BOIL_W), 2, date(2013, 5, 22), "07:05")


def test_an_event_over_midnight_counts_only_where_both_days_do():
    over_midnight = home({1438: BOIL_W})
    assert len(list(candidates(over_midnight, 2, DAYS))) == 1
    assert not list(candidates(over_midnight, 2, DAYS[:1]))
    assert not list(candidates(over_midnight, 2, DAYS[1:]))


def test_of_a_washer_only_the_heating_is_taken_of_other_appliances_the_whole_event():
    programme_w = [60.0, 100.0, 90.0, *[2000.0] * 6, 120.0, 110.0, 100.0]
    heating_w, whole_w = [90.0, *[2000.0] * 6, 120.0], programme_w
    (washing,) = candidates(home({600: programme_w}, "washing_machine"), 2, DAYS)
    (dishes,) = candidates(home({600: programme_w}, "dishwasher"), 2, DAYS)
    assert (list(washing.watts), list(dishes.watts)) == (heating_w, whole_w)


@pytest.mark.parametrize(
    ("watts", "expected"),
    [
        ([2000.0] * 4, False),
        ([2000.0] * 5, True),
        ([2000.0] * 35, True),
        ([2000.0] * 36, False),
        ([299.0] * 9, False),
        ([300.0] * 9, True),
        ([2500.0] * 9, True),
        ([2501.0] * 9, False),
    ],
)
def test_the_filter_has_the_papers_limits(watts, expected):
    assert suits_library(np.array(watts)) == expected


def test_the_rank_is_by_standard_deviation_and_then_by_median():
    flat, high = use("a", [1000.0] * 5), use("b", [1500.0] * 5)
    varied = use("c", [400.0, 800.0, 400.0, 800.0, 400.0])
    assert ranked([flat, high, varied]) == [varied, high, flat]


def test_at_most_two_of_an_appliance_and_house_and_ten_in_all_are_chosen():
    found = [use("kettle", [500.0 + n, *[2000.0] * 5], house) for n in range(9) for house in (1, 2)]
    assert [(one.house, one.watts[0]) for one in choose(found)] == [(1, 500), (2, 500), (1, 501), (2, 501)]
    many = [use(f"{n}", [500.0 + n, *[2000.0] * 5]) for n in range(12)]
    assert [one.name for one in choose(many)] == [str(n) for n in range(10)]


def test_a_library_is_built_from_the_houses_and_days_that_are_named():
    days = {1: DAYS, 2: DAYS}
    microwave = home({60: [1300.0] * 6, 200: [1300.0] * 3}, "microwave")
    collection = build({1: home({425: BOIL_W}), 2: microwave}, days)
    assert [(one.name, one.house) for one in collection.signatures] == [("kettle", 1), ("microwave", 2)]
    assert collection.source == "UK-DALE house 1, 2013-05-21 to 2013-05-22 and house 2, 2013-05-21 to 2013-05-22"
    assert collection.library().names == ("kettle", "microwave")


def test_where_no_use_qualifies_the_filter_is_named():
    with pytest.raises(InputError, match=r"none of 1 uses of kettle.* lasts 5 to 35 minutes .* 300 to 2500 W"):
        build({1: home({425: BOIL_W[:3]})}, {1: DAYS})


def test_an_evaluation_day_and_a_house_without_days_are_refused():
    with pytest.raises(InputError, match="2013-03-18 of house 1 is an evaluation day"):
        build({1: home({})}, {1: (date(2013, 3, 18),)})
    with pytest.raises(InputError, match="no days are set for house 4"):
        build({4: home({})}, {1: DAYS})


def test_sub_libraries_hold_the_first_by_rank_and_each_holds_the_next():
    whole = decoy_library()
    spreads = {name: [np.std(w) for _, w in sub_library(whole, name).signatures()] for name in SUB_LIBRARIES}
    best = sorted((np.std(watts) for _, watts in whole.signatures()), reverse=True)
    assert [len(spread) for spread in spreads.values()] == [10, 9, 7, 5, 3]
    assert all(spread == best[: len(spread)] for spread in spreads.values())


def test_an_unknown_or_too_large_sub_library_is_refused():
    with pytest.raises(InputError, match="no sub-library 'two'; there are main, nine, seven, five, three"):
        sub_library(decoy_library(), "two")
    with pytest.raises(InputError, match="main takes 10 signatures, synthetic has 9; go smaller"):
        sub_library(sub_library(decoy_library(), "nine"), "main")


COLLECTION = Collection("somewhere", (use("kettle", BOIL_W), use("toaster", [900.0, 950.125, 20.5], 2)))


@pytest.fixture
def saved(tmp_path):
    return files.save(COLLECTION, tmp_path / "new" / "library.json")


def test_what_is_saved_is_read_back_with_its_origin_and_digest(saved):
    assert files.read(saved) == COLLECTION
    assert files.library(saved).digest() == COLLECTION.library().digest()
    assert [path.name for path in saved.parent.iterdir()] == ["library.json"]


def test_without_a_file_the_synthetic_library_is_read():
    assert files.library().digest() == decoy_library().digest()
    assert files.read().signatures[0].house is None


def _set(key, value):
    return lambda document: document["signatures"][0].update({key: value})


ALTERATIONS = {
    "watts": lambda document: document["signatures"][0]["watts"].__setitem__(1, 2400.5),
    "house": _set("house", 2),
    "day": _set("day", "2013-05-22"),
    "source": lambda document: document.update(source="elsewhere"),
    "order": lambda document: document["signatures"].reverse(),
    "hash": lambda document: document.update(sha256="0" * 64),
    "hash removed": lambda document: document.pop("sha256"),
}


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS.keys())
def test_an_altered_file_is_refused(saved, alter):
    document = json.loads(saved.read_text())
    alter(document)
    saved.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"library\.json: its content does not match its sha256"):
        files.read(saved)


def test_a_library_written_by_hand_needs_neither_hash_nor_origin(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(COLLECTION.library().to_json())
    assert files.library(path).digest() == COLLECTION.library().digest()
    assert {one.house for one in files.read(path).signatures} == {None}


def _document(watts):
    row = f'{{"name": "kettle", "watts": {watts}}}'
    return f'{{"format": "meterveil-signatures-1", "source": "x", "signatures": [{row}]}}'


REFUSED = {
    "signature 0 (kettle) has shape (1441,); allowed are 1 to 1440": _document(json.dumps([1.0] * 1441)),
    "signature 0 (kettle) has negative or missing watts;": _document("[2000.0, NaN]"),
    "(kettle) has negative or missing watts; a signature": _document("[2000.0, -1.0]"),
    "a signature library must be JSON;": "{",
    'a signature library must be a JSON object with "format"': '{"capacity_kwh": 8}',
    'a signature library needs "source" and "signatures"': '{"format": "meterveil-signatures-1"}',
}


@pytest.mark.parametrize(("words", "text"), REFUSED.items())
def test_a_file_that_is_no_library_is_refused_with_the_reason(tmp_path, words, text):
    path = tmp_path / "foreign.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        files.read(path)
    assert words in str(refused.value)
    assert "foreign.json" in str(refused.value)


def test_an_origin_that_makes_no_sense_is_refused_even_with_a_fitting_hash(saved):
    document = json.loads(saved.read_text())
    document["signatures"][0]["day"] = "soon"
    del document["sha256"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    saved.write_text(json.dumps({**document, "sha256": hashlib.sha256(text.encode()).hexdigest()}))
    with pytest.raises(InputError, match="kettle comes from house 1, day 'soon'; write them as 1 and 2013-03"):
        files.read(saved)


def test_signatures_are_built_from_uk_dale_alone_and_from_both_of_its_houses(tmp_path):
    for house, words in ((1, "1 mains\n"), (2, "1 mains\n")):
        (tmp_path / "redd" / f"house_{house}").mkdir(parents=True)
        (tmp_path / "redd" / f"house_{house}" / "labels.dat").write_text(words)
    with pytest.raises(InputError, match="redd is read as redd; signatures are built from UK-DALE"):
        files.read_houses(tmp_path / "redd")
    (tmp_path / "ukdale" / "house_1").mkdir(parents=True)
    (tmp_path / "ukdale" / "house_1" / "labels.dat").write_text("1 aggregate\n2 tv\n")
    with pytest.raises(InputError, match="has no house 2; signatures are built from houses 1 and 2"):
        files.read_houses(tmp_path)
    (tmp_path / "ukdale" / "house_2").mkdir()
    (tmp_path / "ukdale" / "house_2" / "labels.dat").write_text("1 aggregate\n2 tv\n")
    with pytest.raises(InputError, match="house 1 meters tv; none of them is kettle, toaster"):
        files.read_houses(tmp_path)


@pytest.fixture(scope="module")
def houses(real_data):
    return files.read_houses(real_data)


def test_the_real_library_has_ten_signatures_of_four_appliances_and_two_houses(houses):
    chosen = build(houses).signatures
    made_of = [(one.name, one.house, len(one.watts), round(one.median_w)) for one in chosen]
    assert made_of == [
        ("dishwasher", 1, 30, 2323),
        ("dishwasher", 1, 30, 2179),
        ("dishwasher", 2, 32, 931),
        ("dishwasher", 2, 17, 2003),
        ("washing_machine", 2, 15, 2068),
        ("washing_machine", 2, 16, 2144),
        ("kettle", 1, 5, 2358),
        ("microwave", 2, 5, 1273),
        ("microwave", 2, 5, 1328),
        ("microwave", 1, 5, 524),
    ]


def test_every_real_signature_is_what_the_sub_meter_read_on_a_training_day(houses):
    evaluated = {(row.house, row.day) for row in UKDALE_EVALUATION_DAYS}
    for one in build(houses).signatures:
        assert one.day in LIBRARY_DAYS[one.house]
        assert (one.house, one.day) not in evaluated
        home = houses[one.house]
        first = home.minutes.get_loc(pd.Timestamp(f"{one.day} {one.start}", tz=home.timezone))
        read_w = home.appliances_w[one.name][first : first + len(one.watts)]
        np.testing.assert_allclose(one.watts, read_w, atol=0.001)
        assert max(one.watts) >= on_threshold_w(one.name)
