"""The report in a real browser, at the width of a phone and of a desk, without a network."""

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from meterveil.bench.report.report_page import read_report, write_report

RECORDED = Path(__file__).parents[1] / "results"
MOST_PX = {1280: 3000, 390: 4000}
"""Width of the window -> height of the page with everything folded."""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write_report(read_report(RECORDED), tmp_path_factory.mktemp("report")).as_uri()


@pytest.fixture(scope="module")
def browser(chromium):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=MOST_PX)
def opened(request, browser, address):
    """Page, its complaints, and the addresses that it loaded."""
    page = browser.new_page(viewport={"width": request.param, "height": 800})
    complaints, loaded = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda sent: loaded.append(sent.url))
    page.goto(address)
    yield page, complaints, loaded
    page.close()


def test_the_page_opens_with_six_lines_and_one_picture_and_the_rest_is_folded(opened):
    page, _, _ = opened
    page.wait_for_selector(".plotly-graph-div .main-svg")
    assert page.locator("ol.lead li").count() == 6
    assert page.locator("ol.lead li").first.bounding_box()["y"] < 200
    drawn = page.locator(".plotly-graph-div:has(.main-svg)")
    assert drawn.count() == 1
    assert page.locator("details[open]").count() == 0
    assert 8 <= page.locator("details.group").count() <= 12
    assert page.locator("a").count() == 0
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height < MOST_PX[page.viewport_size["width"]]


def test_unfolded_every_chart_is_drawn_and_only_boxes_scroll_sideways(opened, address):
    page, complaints, loaded = opened
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    page.wait_for_function(
        "[...document.querySelectorAll('.plotly-graph-div')].every(chart => chart.querySelector('.main-svg'))"
    )
    assert page.locator(".plotly-graph-div").count() >= 10
    room = page.evaluate("document.documentElement.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= room
    assert complaints == []
    assert [url for url in loaded if not url.startswith(("data:", "blob:"))] == [address]


def test_a_verdict_has_a_colour_of_its_own(opened):
    page, _, _ = opened
    colours = {
        sign: page.locator(f"td.verdict:has-text('{sign}')").first.evaluate("cell => getComputedStyle(cell).color")
        for sign in ("≈", "▲", "▼")
    }
    assert len({*colours.values(), page.evaluate("getComputedStyle(document.body).color")}) == 4
