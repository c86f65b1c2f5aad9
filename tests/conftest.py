"""Real data and a browser where they are installed, and skips that count as failures where CI says so."""

import os
import shutil
from functools import cache
from pathlib import Path

import pytest
import typer.testing

typer.testing._get_command = cache(typer.testing._get_command)  # it takes longer to build than most commands to run


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    has_no_data = "real_data" in item.fixturenames and not os.environ.get("METERVEIL_DATA")
    if report.skipped and os.environ.get("METERVEIL_NO_SKIPS") and not has_no_data:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where skips count as failures: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("METERVEIL_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped where skips count as failures: {report.longrepr}"


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """Keep what the tests read out of the user's cache."""
    os.environ["METERVEIL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with UK-DALE, REDD and REFIT in the layout of their releases."""
    folder = os.environ.get("METERVEIL_DATA")
    if not folder:
        pytest.skip("METERVEIL_DATA is not set: it names the folder with ukdale, redd and refit")
    return Path(folder)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Browser that draws pictures and opens pages."""
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no chromium; install Debian's package of that name")
    return found
