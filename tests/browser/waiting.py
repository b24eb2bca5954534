"""Waits for what a page does later, however slow the machine: for a state, never for a length of time."""

import time
from collections.abc import Callable
from typing import Any

LIMIT = 60  # seconds


def drawn(page: Any) -> Any:
    """The page after every chart was brought into sight, one after the other, and has drawn itself.

    A chart is drawn when the browser tells the page that it is near the screen, once a frame: a page that is scrolled
    on before the next frame skips it.
    """
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    return page


def becomes(read: Callable[[], Any], expected: Any) -> bool:
    """Whether `read` gives what is expected before the limit; the page's policy forbids playwright's own evaluated wait."""
    end = time.monotonic() + LIMIT
    while read() != expected:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
