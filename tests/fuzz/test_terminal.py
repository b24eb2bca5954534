"""Any text on a terminal: nothing in it acts, and JSON stays what it was."""

import json
import re

from fuzz.counting import cases, tried
from hypothesis import given
from hypothesis import strategies as st

from attnlab.terminal import one_line, printable

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
letters = st.one_of(st.characters(), st.sampled_from("\x1b\x9b\x07\r\b\x7f\u202e\u2066\u2028\t\n"))


@cases(360)
@given(st.dictionaries(st.text(letters, max_size=9), st.text(letters, max_size=20), max_size=3))
def test_any_text_is_shown_without_what_acts_on_a_terminal(texts):
    tried("terminal: any text")
    text = json.dumps(texts, ensure_ascii=False)
    assert not ACTING.search(printable(text))
    assert json.loads(printable(text)) == texts  # spelled as JSON spells it
    assert printable(printable(text)) == printable(text)
    for one in texts.values():
        assert not ACTING.search(one_line(one))
        assert not {"\n", "\t"} & set(one_line(one))
