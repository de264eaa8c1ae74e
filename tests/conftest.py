"""Options shared by all tests."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update, which rewrites expected results; the test that did so still fails, so that the diff is read."""
    parser.addoption("--update", action="store_true", help="rewrite expected results (the test still fails)")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Return whether expected results are to be rewritten."""
    return bool(request.config.getoption("--update"))
