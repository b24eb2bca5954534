"""Waits for what a page does later, however slow the machine: for a state, never for a length of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page  # `make test` collects these tests without it

LIMIT = 60  # seconds


def drawn(page: Page) -> Page:
    """The page after every chart was brought into sight, one after the other, and has drawn itself.

    A chart is drawn when the browser tells the page that it is near the screen, once a frame: a page that is scrolled
    on before the next frame skips it.
    """
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    return page


def settled(page: Page, read: Callable[[], Any], wanted: Any) -> Any:
    """What `read` gives once it is `wanted`, or at the limit; a script that fails has nothing to read yet.

    The page's policy forbids playwright's own evaluated wait.
    """
    from playwright.sync_api import Error

    end = time.monotonic() + LIMIT
    while True:
        try:
            value = read()
        except Error as error:
            value = error
        if value == wanted or time.monotonic() > end:
            return value
        page.wait_for_timeout(50)  # and let the page's own events come in
