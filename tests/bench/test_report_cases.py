"""The table and the picture of every attacker and appliance, with what either side lacks."""

from meterveil.bench.report.charts import cases_chart
from meterveil.bench.report.reading import Results
from meterveil.bench.report.rows import case_rows
from report_cards import papers_cases


def test_a_p_that_the_paper_does_not_print_is_a_dash():
    rows = case_rows("redd", Results(tuple(papers_cases("redd"))))
    papers_p = {row[0]: row[7] for row in rows[1:]}
    assert papers_p["DAE, microwave, F1"] == "-"
    assert papers_p["CO, fridge, RMSE"] == "0.00"
    assert not any("nan" in cell for row in rows for cell in row[1::2])


def test_a_row_of_the_picture_without_our_figures_says_so_and_keeps_the_papers():
    figure = cases_chart("ukdale", Results(tuple(papers_cases("ukdale"))))
    said = [one for one in figure.layout.annotations if one.text == "not measured here"]
    panels = [one.text for one in figure.layout.annotations if "toaster" in one.text]
    assert len(panels) == 1
    assert len(said) == 2
    axis = said[0].xref.removesuffix(" domain")
    values = {bar.name: bar.y for bar in figure.data if bar.xaxis == axis}
    assert all(value is None for value in values["behind ours"])
    assert all(value is not None for value in values["behind the paper's"])


def test_a_row_of_the_picture_with_our_figures_says_nothing():
    figure = cases_chart("redd", Results(tuple(papers_cases("redd"))))
    assert "not measured here" not in [one.text for one in figure.layout.annotations]
