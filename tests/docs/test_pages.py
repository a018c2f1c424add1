"""The pages of the documentation: the kinds of their blocks, their links and their indexes."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of, decisions, pages
from tests.docs.run import Page, commands_of, matches

_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")


def anchors_of(path):
    """The anchors that GitHub makes from the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages())
def test_each_block_has_a_known_language_and_known_flags(page):
    assert [block.name for block in blocks_of(page) if not block.is_known] == []


@pytest.mark.parametrize("page", [*pages(), *decisions()])
def test_links_point_to_existing_files_and_headings(page):
    for link in _LINK.findall((ROOT / page).read_text()):
        name, _, anchor = link.partition("#")
        path = ((ROOT / page).parent / name) if name else ROOT / page
        assert path.exists(), link
        assert not anchor or anchor in anchors_of(path), link


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    names = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in names if name not in index} == set()


def test_the_index_of_decisions_lists_every_title():
    listing = (ROOT / "docs/decisions/README.md").read_text()
    for page in decisions()[:-1]:  # the last one is the index itself
        title = (ROOT / page).read_text().partition("\n")[0].removeprefix("# ")
        assert f"- [{title}]({Path(page).name})" in listing, page


def test_the_index_lists_every_page_with_blocks_that_are_not_run():
    index = (ROOT / "docs" / "README.md").read_text().partition("## What is not run")[2]
    for page in pages():
        has_skipped = any("not-run" in block.flags for block in blocks_of(page))
        assert not has_skipped or page.removeprefix("docs/") in index, page


def test_the_example_of_adding_a_model_runs(tmp_path):
    assert list(Page("docs/adding-a-model.md", tmp_path).failures()) == []


def test_a_console_block_splits_into_commands_and_their_output():
    text = "$ echo 'a\nb' |\n    cat\na\nb\n$ true\n"
    assert list(commands_of(text)) == [("echo 'a\nb' |\n    cat", "a\nb"), ("true", "")]


def test_three_dots_match_any_output():
    assert matches("one\n...\nfour", "one\ntwo\nthree\nfour\n")
    assert not matches("one\n...\nfour", "one\ntwo\n")
