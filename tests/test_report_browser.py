"""The report in a real browser, at the width of a phone and of a desk, without a network."""

import pytest
from playwright.sync_api import sync_playwright

from meterveil.bench.report.files import write_report
from meterveil.bench.report.reading import read_results
from report_cards import write_reproduction

WIDTHS = (390, 1280)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return write_report(read_results(write_reproduction(folder / "results")), folder / "out").as_uri()


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=WIDTHS)
def opened(request, browser, address):
    """The page, what it complained of, and the addresses that it asked for."""
    page = browser.new_page(viewport={"width": request.param, "height": 800})
    complaints, asked = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda one: asked.append(one.url))
    page.goto(address)
    yield page, complaints, asked
    page.close()


def test_the_report_draws_every_chart_and_asks_for_nothing(opened, address):
    page, complaints, asked = opened
    charts = page.locator(".plotly-graph-div")
    assert charts.count() >= 10
    page.wait_for_function(
        "[...document.querySelectorAll('.plotly-graph-div')].every(chart => chart.querySelector('.main-svg'))"
    )
    assert page.evaluate("document.querySelectorAll('.bars .point path').length") > 50
    assert complaints == []
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [address]


def test_only_boxes_scroll_sideways_and_never_the_page(opened):
    page, _, _ = opened
    room = page.evaluate("document.documentElement.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= room
    boxes = page.locator("section > div")
    assert all(boxes.nth(number).bounding_box()["width"] <= room for number in range(boxes.count()))


def test_the_contents_lead_to_every_section(opened):
    page, _, _ = opened
    targets = page.eval_on_selector_all("nav a", "links => links.map(link => link.hash.slice(1))")
    assert len(targets) > 10
    assert len(set(targets)) == len(targets)
    assert all(page.locator(f"section[id='{target}'] h2").count() == 1 for target in targets)


def test_the_verdict_is_seen_before_anything_is_scrolled(opened):
    page, _, _ = opened
    first = page.locator("ul.lead li").first
    assert first.bounding_box()["y"] < 200
    verdicts = page.locator("section#claims td:nth-child(2)").first
    right = verdicts.bounding_box()["x"] + verdicts.bounding_box()["width"]
    assert right <= page.evaluate("document.documentElement.clientWidth")


def test_a_figure_has_a_sentence_before_it(opened):
    page, _, _ = opened
    silent = page.evaluate(
        "[...document.querySelectorAll('section')]"
        ".filter(part => part.querySelector('.plotly-graph-div, img') && !part.querySelector('p'))"
        ".map(part => part.id)"
    )
    assert silent == []


def test_a_verdict_has_a_colour_that_words_around_it_do_not_have(opened):
    page, _, _ = opened
    cells = page.locator("section#claims td")
    colours = {
        word: cells.get_by_text(word, exact=True).first.evaluate("cell => getComputedStyle(cell).color")
        for word in ("reproduced", "worse")
    }
    assert len({*colours.values(), page.evaluate("getComputedStyle(document.body).color")}) == 3


def test_a_long_table_shows_that_it_goes_on(opened):
    page, _, _ = opened
    boxes = page.locator(".wide:has(tr:nth-child(31))")
    assert boxes.count() > 0
    for number in range(boxes.count()):
        box = boxes.nth(number)
        rows = box.locator("tbody tr").count()
        assert box.evaluate("box => box.nextElementSibling.textContent") == f"{rows} rows in all"
        assert (
            box.evaluate("box => getComputedStyle(box).backgroundAttachment")
            == "local, local, scroll, scroll"
        )


def test_every_claim_is_read_without_scrolling_sideways(opened):
    page, _, _ = opened
    box = page.locator("section#claims .wide")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    commands = page.locator("section#claims td small").all_text_contents()
    assert len(commands) == page.locator("section#claims tbody tr").count()
    assert all(command.startswith("meterveil reproduce --table ") for command in commands)


def test_in_the_dark_cells_that_stay_in_place_have_the_colours_of_the_page(browser, address):
    page = browser.new_page(color_scheme="dark")
    page.goto(address)
    colours = [
        page.locator(place).first.evaluate(
            "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
        )
        for place in ("body", "thead th", "#claims td:first-child")
    ]
    page.close()
    assert colours == [["rgb(31, 31, 31)", "rgb(227, 227, 227)"]] * 3
