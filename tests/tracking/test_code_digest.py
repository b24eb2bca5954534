"""The digest of the code: what changes it, what must not, and that nothing which decides a number is left out."""

import ast
from pathlib import Path

import pytest

import attnlab
from attnlab.tracking.code_digest import COUNTED, bare, code_digest, digest_of, read_sources

PACKAGE = Path(attnlab.__file__).parent
# The docstring of code_digest.py says why.
DECIDE_NOTHING = {"config", "identity", "interrupt", "errors", "progress", "tracking", "terminal", "texts"}

SOURCE = '''"""A module.

Über: two lines.
"""
# a comment

NAME = "# no comment"  # a comment ü


class Empty(Exception):
    """Only a docstring."""


def add(a, b):
    """Adds."""

    text = """not a docstring"""
    return a + b  # the sum
'''
BARE = '''NAME = "# no comment"
class Empty(Exception):
def add(a, b):
    text = """not a docstring"""
    return a + b'''


def test_comments_docstrings_and_blank_lines_are_cut_and_nothing_else():
    assert bare(SOURCE) == BARE


@pytest.mark.parametrize(("name", "text"), read_sources(PACKAGE).items(), ids=list(read_sources(PACKAGE)))
def test_what_is_left_of_each_file_is_its_code(name, text):
    """Oracle: Python's own syntax trees, which have no comments; a docstring becomes `pass` in both."""

    def tree(source):
        whole = ast.parse(source)
        for node in ast.walk(whole):
            if (
                isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                and ast.get_docstring(node) is not None
            ):
                node.body[0] = ast.Pass()
        return whole

    def less_pass(whole):
        for node in ast.walk(whole):
            if isinstance(getattr(node, "body", None), list):
                node.body = [one for one in node.body if not isinstance(one, ast.Pass)]
        return ast.dump(whole)

    # A body that was nothing but its docstring is no code on its own: give it one statement for the parser.
    left = []
    lines = bare(text).split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        left.append(line)
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith(("class ", "def ")) and line.endswith(":"):
            inner = len(following) - len(following.lstrip())
            if inner <= indent:
                left.append(" " * (indent + 4) + "pass")
    assert less_pass(tree("\n".join(left))) == less_pass(tree(text)), name


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda text: text.replace("# the sum", "# their sum"), True),
        (lambda text: text.replace("Adds.", "The sum."), True),
        (lambda text: text.replace("\n\n\n", "\n\n"), True),
        (lambda text: text.replace("a + b", "a - b"), False),
        (lambda text: text.replace("# no comment", "# none"), False),
    ],
)
def test_a_change_of_code_changes_it_and_a_change_of_words_does_not(change, same):
    assert change(SOURCE) != SOURCE
    assert (digest_of({"f.py": change(SOURCE)}) == digest_of({"f.py": SOURCE})) is same


def test_a_file_more_or_a_file_moved_is_another_code():
    one = digest_of({"a.py": SOURCE})
    assert one != digest_of({"b.py": SOURCE})
    assert one != digest_of({"a.py": SOURCE, "b.py": ""})
    assert len(code_digest()) == 64


def test_what_the_counted_files_import_is_counted_or_decides_nothing():
    sources = read_sources(PACKAGE)
    assert {name.split("/")[0] for name in sources} == {name.split("/")[0] for name in COUNTED}
    for name, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("attnlab"):
                continue
            for imported in node.names:
                module = f"{node.module}.{imported.name}".replace(".", "/").removeprefix("attnlab/")
                files = [
                    file for file in (f"{module}.py", f"{module.rpartition('/')[0]}.py") if file in sources
                ]
                known = files or f"{module.rpartition('/')[0]}/__init__.py" in sources
                assert known or module.split("/")[0] in DECIDE_NOTHING, f"{name} imports {module}"
