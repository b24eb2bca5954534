"""How many cases each target gets: all of them under `make fuzz`, a hundredth in the tests of every day."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings

FULL = os.environ.get("ATTNLAB_FUZZ") == "full"
TRIED: Counter[str] = Counter()  # cases by target, as run


def cases(full: int) -> settings:
    """The settings of a target that has `full` cases in a whole round."""
    return settings(
        max_examples=full if FULL else max(3, full // 100),
        deadline=None if FULL else timedelta(seconds=60),
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
        print_blob=True,
    )


def tried(target: str) -> None:
    """Called first thing in each case."""
    TRIED[target] += 1


def one_sentence(message: str) -> bool:
    """What a user gets for a mistake: one line that says something, and no list of frames."""
    return 10 < len(message) < 1000 and "\n" not in message and "Traceback" not in message


def refused_well(message: object) -> None:
    """Fails for a refusal of another kind."""
    assert one_sentence(str(message)), str(message)
