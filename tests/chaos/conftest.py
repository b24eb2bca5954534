"""The seed of this session's campaign is printed, so that it can be repeated."""

from sweeps import SEED


def pytest_report_header():
    return f"chaos: CHAOS_SEED={SEED} repeats these moments"
