"""A page and its data as one HTML file: no network, no other file, and nothing of a run's text ever read as markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from typing import Any

from attnlab.errors import UserError

# In the order in which they are put together: a module imports from earlier ones alone.
MODULES = (
    "dom", "numbers", "state", "marks", "chart", "table", "legend", "heat", "claims", "ablation", "curves", "entropy",
    "gradients", "leak", "response", "parallel", "maps", "translations", "provenance", "study", "query", "groups",
    "run_tables", "run_charts", "explorer", "main",
)  # fmt: skip
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|let|function|async function) (\w+))", re.MULTILINE)
_MARK = re.compile(r"\{\{(\w+)\}\}")


def page(contents: Any, title: str) -> str:
    """The HTML file that shows `contents` (dataclasses, dicts and lists; no NaN). Raises UserError without plotly."""
    plotly, script = plotly_js(), bundle()
    parts = {
        "title": html.escape(title),
        "policy": _policy(plotly, script),
        "style": _file("page.css"),
        "data": embedded(contents),
        "plotly": plotly,
        "script": script,
    }
    # One pass over the template: a mark inside the data is text.
    return _MARK.sub(lambda found: parts[found[1]], _file("page.html"))


def embedded(contents: Any) -> str:
    """JSON for a script element: with no `<` in it no text can end the element, nor begin another."""
    text = json.dumps(contents, default=vars, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Outside of strings JSON has none of these, so that they may be written as escapes wherever they stand.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def bundle() -> str:
    """The modules of page/ as one script, each in a scope of its own: a page on disk cannot import from other files."""
    return '"use strict";\n' + "\n".join(_module(name, _file(f"{name}.js")) for name in MODULES)


def _module(name: str, text: str) -> str:
    exported = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = \2Module;", text))
    return f"const {name}Module = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"


def plotly_js() -> str:
    """Plotly's own script, as its Python package brings it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise UserError(
            "report: got no plotly, allowed: pip install 'attnlab[report]', which brings it"
        ) from None
    return str(get_plotlyjs())


def _policy(*scripts: str) -> str:
    """These scripts and no other may run; nothing is loaded from anywhere but the page's own server, if it has one."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'"
    )


def _file(name: str) -> str:
    return resources.files("attnlab.report").joinpath("page", name).read_text(encoding="utf-8")
