"""`meterveil submit`: cards from elsewhere are checked to the last field, and kept without change."""

import copy
import json
from pathlib import Path

import pytest
from meterveil.bench.reproduce.specs import FIXED, TABLES
from typer.testing import CliRunner

from meterveil.bench import cards
from meterveil.bench.cards import SUBMITTED, Card
from meterveil.bench.documents import Document
from meterveil.bench.entries import needed_settings
from meterveil.bench.submission import keep, read_submission
from meterveil.cli import app
from meterveil.errors import InputError

COMMIT = "0123abc"
RECORDED = Path(__file__).parents[1] / "results"
UNFIT = {
    "evaluation_paper_day": "some of its defences met no adaptive attackers, and have no chance beside them",
    "training_observations": "recorded from a checkout with uncommitted changes",
}
"""Table of ours that could not be submitted -> why."""

SPARED = {row.label for row in TABLES["many_days"].rows if row.threats == FIXED}
"""Rows of ours that adaptive attackers do not meet unless one asks."""


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "300"})


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """What an evaluation really writes, as if from a clean checkout: chance, and no defence."""
    folder = tmp_path_factory.mktemp("measured")
    quick = ("--attackers", "co", "--copies", 1, "--seeds", 2, "--workers", 1)
    places = ("--results", folder / "cards", "--out", folder / "out")
    done = run("evaluate", "none", "random_equal:3", "--against", "none", *quick, *places)
    assert done.exit_code == 0, done.output
    return [card | {"commit": COMMIT} for card in cards.read(folder / "cards")]


@pytest.fixture
def written(tmp_path):
    def write(documents):
        path = tmp_path / "cards.json"
        path.write_text(json.dumps(documents))
        return path

    return write


def keyed(document):
    """Give a card the key of what it says."""
    values = {name: value for name, value in document.items() if name not in ("key", "commit")}
    return document | {"key": Card(**values | {"seeds": tuple(document["seeds"])}).key}


def under_another_name(documents, name):
    """The cards of chance, as if a defence of this name had been measured."""
    own = [copy.deepcopy(card) for card in documents if card["settings"]["defence"] == "random_equal:3"]
    for card in own:
        card["row"] = card["row"].replace("random_equal:3", name)
        card["settings"]["defence"] = name
    return [keyed(card) for card in own]


def problems(documents, written):
    return [f"{where}: {what}" for where, what in read_submission([written(documents)]).problems]


def test_what_an_evaluation_wrote_is_complete_and_kept_as_it_came(measured, written, tmp_path):
    result = run("submit", written(measured), "--name", "chance", "--results", tmp_path / "results")
    assert result.exit_code == 0, result.output
    kept = tmp_path / "results" / "submitted" / "chance"
    assert (kept / "evaluation_one_day" / "synthetic" / "battery--random-equal-3.json").exists()
    by_key = {card["key"]: card for card in cards.read(kept)}
    assert by_key == {card["key"]: card for card in measured}
    assert f"{len(measured)} cards are kept" in result.output


def test_ours_and_what_others_submitted_stay_apart(measured, tmp_path):
    keep(tmp_path, "theirs", measured)
    assert cards.read(tmp_path) == []
    assert read_submission([tmp_path / "submitted" / "theirs"]).problems == ()
    with pytest.raises(InputError, match="holds no result cards"):
        read_submission([tmp_path])


def test_checking_alone_writes_nothing(measured, written, tmp_path):
    result = run(
        "submit", written(measured), "--name", "chance", "--check", "--results", tmp_path / "results"
    )
    assert result.exit_code == 0
    assert f"{len(measured)} cards are complete" in result.output
    assert not (tmp_path / "results").exists()


def test_a_card_that_is_kept_is_never_changed(measured, tmp_path):
    files = keep(tmp_path, "chance", measured)
    before = {path: path.read_text() for path in files}
    assert keep(tmp_path, "chance", measured) == files
    better = copy.deepcopy(measured)
    better[0]["measured"] = 1e-9
    with pytest.raises(InputError, match=r"holds another card of .*never changed; give .* another --name"):
        keep(tmp_path, "chance", better)
    assert {path: path.read_text() for path in files} == before
    assert keep(tmp_path, "chance_again", better)


def test_further_cards_of_a_row_join_those_that_are_kept(measured, tmp_path):
    row = [card for card in measured if card["row"] == "battery, none"]
    [path] = keep(tmp_path, "none", row[:2])
    keep(tmp_path, "none", row[2:])
    assert json.loads(path.read_text()) == row


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measured": "12"}, "measured: Input should be a valid number"),
        ({"measured": True}, "measured: Input should be a valid number"),
        ({"spread": -1.0}, "spread: Input should be greater than or equal to 0"),
        ({"seeds": []}, "seeds: a figure was measured with at least one"),
        ({"n_days": 1.5}, "n_days: Input should be a valid integer"),
        ({"threat_model": "blind"}, "threat_model: Input should be 'clean', 'fixed' or 'adaptive'"),
        ({"table": "../../etc"}, "table: String should match pattern"),
        ({"dataset": "/tmp"}, "dataset: String should match pattern"),
        ({"rank": 1}, "rank: Extra inputs are not permitted"),
        ({"n_days": 99}, "key: it is "),
        ({"key": "0" * 16}, "but what the card says hashes to"),
        ({"commit": ""}, "commit: it is empty; measure with meterveil from a git checkout"),
        ({"commit": "0123abc-dirty"}, "had uncommitted changes; commit them and measure again"),
        ({"commit": "yesterday"}, "commit: 'yesterday' is no commit"),
    ],
)
def test_a_card_says_precisely_what_is_wrong_with_it(measured, written, change, words):
    first, *rest = measured
    [found, *_] = problems([first | change, *rest], written)
    assert words in found
    assert first["column"] in found


@pytest.mark.parametrize("name", ["defence", "attackers", "training", "test"])
def test_settings_must_name_what_was_measured(measured, written, name):
    first = next(card for card in measured if card["row"] == "headline, none, fixed")
    rest = [card for card in measured if card is not first]
    lacking = {key: value for key, value in first["settings"].items() if key != name}
    found = problems([keyed(first | {"settings": lacking}), *rest], written)
    assert f"settings.{name}: it is missing" in found[0]


@pytest.mark.parametrize("field", sorted(set(Card.__dataclass_fields__) | {"key", "commit"}))
def test_a_field_that_is_missing_is_named(measured, written, field):
    first, *rest = measured
    [found, *_] = problems([{k: v for k, v in first.items() if k != field}, *rest], written)
    assert f"{field}: Field required" in found


def test_an_entry_needs_both_threat_models_and_every_cost(measured, written):
    adaptive = [card for card in measured if card["threat_model"] != "adaptive"]
    [none, chance] = problems(adaptive, written)
    assert "synthetic / none: row 'headline, none, adaptive' is missing: attackers that adapt" in none
    assert "random_equal:3, adaptive" in chance
    cheap = [card for card in measured if card["column"] != "soc_neutral_cost"]
    assert "row 'battery, none' has no figure, and no note on why, in soc_neutral_cost" in str(
        problems(cheap, written)
    )


def test_an_entry_needs_chance_at_equal_throughput_beside_it(measured, written):
    own = under_another_name(measured, "cap")
    [found] = problems(own, written)
    assert "cap moves 3.0" in found
    assert "no chance that moves as much is beside it (D8); measure random_equal:3.0" in found
    assert problems([*measured, *own], written) == []


def test_what_could_not_be_measured_needs_a_sentence_why(measured, written):
    at = next(
        n
        for n, card in enumerate(measured)
        if (card["row"], card["column"]) == ("headline, none, adaptive", "f1_leak")
    )
    empty = [*measured[:at], measured[at] | {"measured": None, "note": ""}, *measured[at + 1 :]]
    assert "no note on why, in f1_leak" in str(problems(empty, written))
    note = {"measured": None, "seeds": [], "note": "no use"}
    explained = [*measured[:at], keyed(measured[at] | note), *measured[at + 1 :]]
    assert problems(explained, written) == []


def test_every_recorded_card_is_what_a_card_must_be():
    documents = cards.read(RECORDED)
    assert len(documents) > 1000
    for document in documents:
        assert Document.model_validate(document).card().key == document["key"]


def test_what_we_recorded_ourselves_could_be_submitted():
    tables = {path.name for path in RECORDED.iterdir() if path.is_dir()} - {SUBMITTED, *UNFIT}
    assert {"many_days", "overall_transfer", "strength_10_training_paper_day"} <= tables
    for table in sorted(tables):
        found = read_submission([RECORDED / table])
        left = [(where, what) for where, what in found.problems if where.split(" / ")[-1] not in SPARED]
        assert left == []
        assert all("attackers that adapt to it (D11)" in what for _, what in found.problems)
        assert found.documents


def test_what_a_reproduction_takes_needs_no_days_and_no_defence():
    assert needed_settings("reproduction_time", "clean") == {}


def test_chance_that_moves_more_is_the_harder_rival_and_will_do(measured, written):
    own = under_another_name(measured, "cap")
    for card in own:
        if card["column"] == "throughput_kwh":
            card["measured"] = 1.2
    assert problems([*measured, *own], written) == []
    for card in own:
        if card["column"] == "throughput_kwh":
            card["measured"] = 6.0
    assert "cap moves 6.00 kWh a day" in problems([*measured, *own], written)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "is no file of result cards"),
        ('[{"measured": NaN}]', "NaN is no number; write null"),
        ("[3]", "no card"),
    ],
)
def test_files_that_hold_no_cards_are_named(text, words, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(text)
    [(where, what), *_] = read_submission([path]).problems
    assert words in f"{where}: {what}"
    assert str(path) in where


def test_a_submission_with_problems_is_refused_with_a_list_of_them(measured, written, tmp_path):
    case = next(card for card in measured if card["row"].startswith("co kettle"))
    path = written([case | {"commit": ""}, *(card for card in measured if card is not case)])
    result = run("submit", path, "--name", "chance", "--results", tmp_path / "results")
    assert result.exit_code == 2
    said = " ".join(result.output.split())
    assert "commit: it is empty" in said
    assert "nothing was written: mend the 1 above, and submit again" in said
    assert not (tmp_path / "results").exists()


def test_a_name_that_is_no_folder_and_a_path_that_is_not_there_are_refused(measured, tmp_path):
    with pytest.raises(InputError, match=r"--name '../mine' is no name; use"):
        keep(tmp_path, "../mine", measured)
    assert "there is no" in run("submit", tmp_path / "gone", "--name", "x").output
