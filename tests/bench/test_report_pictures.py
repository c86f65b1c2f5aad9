"""The report's pictures of minutes: drawn from one's own data, embedded whole, and never needed."""

import json

import pytest
from evaluation_runs import write_run

from meterveil.bench.report.drawing import draw, draw_day
from meterveil.bench.report.page import report_page
from meterveil.bench.report.pictures import INDEX, NAMES, pictures
from meterveil.bench.report.reading import Results
from meterveil.data.synthetic import decoy_library
from meterveil.errors import InputError
from meterveil.plots.html import phone_path
from report_cards import reproduction


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, chromium):
    """Pictures of the synthetic signatures, which need no data."""
    folder = tmp_path_factory.mktemp("pictures")
    draw([], None, folder, folder)
    return folder


def test_a_picture_is_drawn_for_both_widths_and_says_what_it_is(drawn):
    path = drawn / "report-signatures.png"
    assert path.read_bytes()[:4] == phone_path(path).read_bytes()[:4] == b"\x89PNG"
    index = json.loads((drawn / INDEX).read_text())
    assert "They are synthetic." in index["report-signatures"]["words"]
    assert set(index["report-signatures"]) == {"words", "settings", "commit"}


def test_the_page_embeds_its_pictures_and_names_the_command_for_those_that_are_missing(drawn):
    page = report_page(Results(tuple(reproduction())), drawn)
    section = page.split("<h2>The signatures</h2>")[1].split("</section>")[0]
    assert section.count("data:image/png;base64,") == 2
    assert "They are synthetic." in section
    day = page.split("<h2>The paper&#39;s day, REDD</h2>")[1].split("</section>")[0]
    assert "python -m meterveil.bench.report.drawing draws it" in day
    assert "<img" not in day


def test_a_report_without_pictures_still_has_their_sections(tmp_path):
    found = pictures(tmp_path)
    assert found.html == {}
    assert [section.heading for section in found.sections] == ["The system", *NAMES.values()]


@pytest.mark.parametrize("content", ["{", "[]", '{"report-signatures": {"words": 3}}'])
def test_a_damaged_description_is_named(tmp_path, content):
    (tmp_path / INDEX).write_text(content)
    with pytest.raises(InputError, match="does not describe pictures; draw them again"):
        pictures(tmp_path)


def test_redd_alone_is_drawn_with_the_signatures_of_its_training_over_a_damaged_description(
    drawn, tmp_path, real_data
):
    library = decoy_library().subset([0, 1])
    training = write_run(tmp_path / "run", "REDD house_2", [], library=library)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "redd").symlink_to(real_data / "redd")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / INDEX).write_text("{damaged")
    draw([training], None, tmp_path / "data", tmp_path / "pictures")
    index = json.loads((tmp_path / "pictures" / INDEX).read_text())
    assert index["report-signatures"]["settings"] == {"library": library.digest()}
    assert index["report-signatures"]["words"].startswith("The 2 signatures")
    assert index["report-day-redd"]["settings"]["day"] == "2011-04-29"


def test_words_and_pictures_agree_where_a_later_one_cannot_be_drawn(drawn, tmp_path):
    library = decoy_library().subset([0])
    training = write_run(tmp_path / "run", "UK-DALE house_1", [], library=library)
    with pytest.raises(InputError, match=r"no household of .* of ukdale or redd, and the folder"):
        draw([training], None, tmp_path, tmp_path / "pictures")
    index = json.loads((tmp_path / "pictures" / INDEX).read_text())
    assert index["report-signatures"]["settings"] == {"library": library.digest()}


def test_a_folder_that_holds_no_training_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no training"):
        draw_day(tmp_path, tmp_path, tmp_path)
