"""One file, no network, and no text of a run that is read as markup."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.report.html import MODULES, bundle, embedded, page

HOSTILE = "</script><script>alert(1)</script><!-- \u2028 \" ' & \\ {{policy}} \u202eabc"


class Reader(HTMLParser):
    """The elements of a page with their attributes, and the text of each script, as a browser's parser splits them."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script":
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self.found.append((f"/{tag}", {}))


@given(
    st.recursive(
        st.text() | st.integers() | st.none() | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_embedded_data_come_back_and_hold_no_markup(value):
    text = embedded(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


def test_a_hostile_text_adds_no_element():
    plain, hostile = Reader(page({"kind": "runs"}, "t")), Reader(page({"kind": HOSTILE}, HOSTILE))
    assert [tag for tag, _ in plain.found] == [tag for tag, _ in hostile.found]
    assert json.loads(hostile.scripts[0]) == {"kind": HOSTILE}


def test_nothing_is_loaded_from_elsewhere():
    read = Reader(page({}, "t"))
    assert not [
        attributes for _, attributes in read.found if attributes.keys() & {"src", "srcset", "data", "poster"}
    ]
    assert {attributes.get("href") for tag, attributes in read.found if tag in ("a", "link")} == {"#content"}
    style = re.search(r"<style>(.*?)</style>", page({}, "t"), re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_the_page_s_own_scripts_alone():
    read = Reader(page({}, "t"))
    policy = next(
        attributes["content"]
        for tag, attributes in read.found
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    _, *scripts = read.scripts
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert "script-src " + " ".join(f"'sha256-{one}'" for one in hashes) + ";" in policy
    assert "unsafe-eval" not in policy
    assert "default-src 'none'" in policy


def test_plotly_is_there_once():
    assert page({}, "t").count("plotly.js v") == 1


def test_modules_import_what_earlier_ones_export():
    folder = resources.files("attnlab.report").joinpath("page")
    assert sorted(MODULES) == sorted(
        file.name.removesuffix(".js") for file in folder.iterdir() if file.name.endswith(".js")
    )
    exported = {}
    for name in MODULES:
        text = folder.joinpath(f"{name}.js").read_text(encoding="utf-8")
        imports = re.findall(r"import \{([^}]*)\} from \"\./(\w+)\.js\";", text)
        assert len(imports) == len(re.findall(r"^import", text, re.MULTILINE))
        for names, source in imports:
            assert {one.strip() for one in names.split(",") if one.strip()} <= exported[source], (
                name,
                source,
            )
        exported[name] = set(
            re.findall(r"^export (?:const|let|function|async function) (\w+)", text, re.MULTILINE)
        )
    assert not re.search(r"^\s*(import|export)\b", bundle(), re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_no_module_writes_markup_or_evaluates_text(name):
    text = resources.files("attnlab.report").joinpath("page", f"{name}.js").read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setTimeout\(\"", text
    )
