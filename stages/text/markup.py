"""Removes markup from a text that is still being written. The words stay.

- Headings, lists, quotes, emphasis, inline code, HTML tags and tables lose their marks. Table cells
  are separated by commas. Rules and other lines of decoration are dropped.
- Links and images become their text. A bare web address becomes its host ("example.com").
- Fenced code becomes an announcement, or nothing if the announcement is empty.

The result does not depend on how the text was divided between calls of `feed`. While the next
characters could change the result at a place, `feed` holds the text back from there. It holds back
at most `_MAX_HELD` characters, `_MAX_LINK` in a link or a tag. Only a web address is held back
until it ends.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, ClassVar

from stages.text.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_HELD = 256
_MAX_LINK = 2048

_LINE_MARKS = re.compile(r"[^\S\n]*[>#*+\-_=~`|:.\u2022\u2023\u25e6\u25aa\u2013\u2014 \t]*")
_FENCE = re.compile(r"[^\S\n]*(```+|~~~+)[^\n`]*(\n|\Z)")
_DECORATION = re.compile(r"[^\S\n]*[-_*=~#+|:.\u2022\u2013\u2014 \t]{3,}(?:\n|\Z)")
_PREFIX = re.compile(
    r"(?:[^\S\n]*(?:>|#{1,6}(?=\s)|[-*+\u2022\u2023\u25e6\u25aa\u2013](?=[^\S\n])))*[^\S\n]*"
)
_CHECKBOX = re.compile(r"\[[ xX]\](?=\s)")
_PLAIN = re.compile(
    r"(?:[^\n*_~`\[\]!<\\&|#hHwWfF]|(?<=\w)[hHwWfF]|[hHwWfF](?=[^tTwW]))+"  # no http, ftp, www
)
_RUN = re.compile(r"([*_~`])\1*")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,40}\]")
_TARGET = re.compile(r"\]\((?:[^()\n]|\([^()\n]*+\))*+\)")
_REFERENCE = re.compile(r"\]\[[^\]\n]{0,80}\]")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>")
_OPEN_TAG = re.compile(r"<[/!A-Za-z][^<>\n]*\Z|<!--|<\Z")
_LINE_TAG = re.compile(r"</?(?:br|p|div|li|ul|ol|tr|h\d|table|blockquote)\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_OPEN_ENTITY = re.compile(r"&#?\w{0,32}\Z")
_CLOSING_HEADING = re.compile(r"#+[^\S\n]*(?=\n|\Z)")
_CELL_END = re.compile(r"\|[^\S\n]*")
_ADDRESS = re.compile(r"(?i:(?:https?|ftp)://|www\.)[^\s<>\"'`|*\[\]{}\\]*")
_OPEN_ADDRESS = re.compile(
    r"(?i:h(?:t(?:t(?:p(?:s?(?::/?)?)?)?)?)?|f(?:t(?:p(?::/?)?)?)?|w{1,3})\Z"
)
_ADDRESS_END = re.compile(r"[.,;:!?)*_~]*\Z")
_HOST = re.compile(r"(?i:[a-z]+://)?(?:[^/@?#]*@)?(?i:www\.)?([^/:?#]+)")


class Cleaner:
    """Removes the markup of one text. Call `feed` for each part, then `finish` once.

    Both return the clean text that is certain now. `num_read` counts the code points that came in.
    """

    def __init__(self, code_announcement: str) -> None:
        self.num_read = 0
        self._code_announcement = code_announcement
        self._text = "\n"  # the text that is held back, after one character before it
        self._offset = -1  # the offset of `_text` in the source
        self._line_start = True
        self._fence = ""  # the opening fence while inside a block of code
        self._in_row = False  # in a row of a table
        self._final = False
        self._parts: list[Traced] = []

    def feed(self, text: str) -> Traced:
        """Add text. Returns the clean text that is certain now."""
        self.num_read += len(text)
        self._text += text
        at = 1
        while at < len(self._text):
            after = self._step(at)
            if after is None:
                break
            at = after
        self._text, self._offset = self._text[at - 1 :], self._offset + at - 1
        parts, self._parts = self._parts, []
        return Traced.joined(parts)

    def finish(self) -> Traced:
        """Return the rest of the clean text."""
        self._final = True
        return self.feed("")

    # Each method below handles the text at index `at`. It returns the index where to continue, or
    # None to wait for more text.

    def _step(self, at: int) -> int | None:
        if self._fence:
            return self._code(at)
        if self._line_start:
            return self._begin_line(at)
        if match := _PLAIN.match(self._text, at):
            return self._keep(at, match.end())
        return self._HANDLERS[self._text[at]](self, at)

    def _code(self, at: int) -> int | None:
        """Drop a line of fenced code, or the fence that closes it."""
        end = self._text.find("\n", at) + 1
        if not end and not self._final:
            return None
        line = self._text[at : end or len(self._text)].strip()
        if line.startswith(self._fence) and not line.strip(self._fence[0]):
            self._fence = ""
        return end or len(self._text)

    def _begin_line(self, at: int) -> int | None:
        text = self._text
        marks = _LINE_MARKS.match(text, at, at + _MAX_HELD)
        assert marks is not None
        if self._awaits_more(marks.end(), at):
            return None
        if fence := _FENCE.match(text, at):
            if not fence[2] and self._awaits_more(len(text), at):
                return None
            self._fence = fence[1]
            announcement = f"{self._code_announcement}\n" if self._code_announcement else ""
            self._replace(announcement, at, fence.end())
            return fence.end()
        if decoration := _DECORATION.match(text, at, at + _MAX_HELD):
            return decoration.end()
        prefix = _PREFIX.match(text, at, at + _MAX_HELD)
        assert prefix is not None
        after = prefix.end()
        if text.startswith("[", after) and prefix[0].strip():
            if self._awaits_more(len(text), after, 4):
                return None
            if box := _CHECKBOX.match(text, after):
                after = box.end()
        self._line_start = False
        self._in_row = text.startswith("|", after)
        return after + 1 if self._in_row else after

    def _newline(self, at: int) -> int:
        self._line_start = True
        return self._keep(at, at + 1)

    def _escape(self, at: int) -> int | None:
        following = self._text[at + 1 : at + 2]
        if not following and not self._final:
            return None
        mark = following.isascii() and following.isprintable() and not following.isalnum()
        return self._keep(at + 1, at + 2) if mark and following != " " else self._keep(at, at + 1)

    def _marks(self, at: int) -> int | None:
        """Handle a run of emphasis or code marks."""
        match = _RUN.match(self._text, at, at + _MAX_HELD)
        assert match is not None
        end = match.end()
        if self._awaits_more(end, at):
            return None
        before, after = self._text[at - 1], self._text[end : end + 1]
        kept = _marks_kept(match[0], before, after)
        self._replace(kept, at, end)
        return end

    def _bracket(self, at: int) -> int | None:
        if self._awaits_more(at + 1, at):
            return None
        if self._text.startswith("[^", at):
            if match := _FOOTNOTE.match(self._text, at):
                return match.end()
            if self._awaits_more(len(self._text), at, 44) and self._may_be_footnote(at):
                return None
        if self._text[at - 1].isalnum():
            self._replace(" ", at, at + 1)
        return at + 1

    def _close_bracket(self, at: int) -> int | None:
        """Drop the end of a link's text, and its target."""
        if self._awaits_more(at + 1, at):
            return None
        following = self._text[at + 1 : at + 2]
        pattern = {"(": _TARGET, "[": _REFERENCE}.get(following)
        if pattern is not None:
            if match := pattern.match(self._text, at, at + _MAX_LINK):
                return match.end()
            if self._awaits_more(len(self._text), at, _MAX_LINK) and "\n" not in self._text[at:]:
                return None
        return at + 1

    def _image(self, at: int) -> int | None:
        if self._awaits_more(at + 1, at):
            return None
        return at + 1 if self._text.startswith("![", at) else self._keep(at, at + 1)

    def _tag(self, at: int) -> int | None:
        if self._text.startswith("<!--", at):
            if end := self._text.find("-->", at + 4, at + _MAX_LINK) + 1:
                return end + 2
        elif match := _TAG.match(self._text, at, at + _MAX_LINK):
            if _ADDRESS.match(self._text, at + 1):
                self._replace(_host(match[0][1:-1]), at, match.end())
            elif _LINE_TAG.match(match[0]):
                self._replace("\n", at, match.end())
            return match.end()
        if self._awaits_more(len(self._text), at, _MAX_LINK) and _OPEN_TAG.match(self._text, at):
            return None
        return self._keep(at, at + 1)

    def _entity(self, at: int) -> int | None:
        if match := _ENTITY.match(self._text, at):
            self._replace(html.unescape(match[0]), at, match.end())
            return match.end()
        if not self._final and _OPEN_ENTITY.match(self._text, at):
            return None
        return self._keep(at, at + 1)

    def _cell(self, at: int) -> int | None:
        match = _CELL_END.match(self._text, at, at + _MAX_HELD)
        assert match is not None
        if self._awaits_more(match.end(), at):
            return None
        if not self._in_row:
            return self._keep(at, at + 1)
        if self._text[match.end() : match.end() + 1] not in ("", "\n"):
            self._replace(", ", at, match.end())
        return match.end()

    def _hash(self, at: int) -> int | None:
        match = _CLOSING_HEADING.match(self._text, at, at + _MAX_HELD)
        if match and self._awaits_more(match.end(), at):
            return None
        if match and self._text[at - 1].isspace():
            return match.end()
        return self._keep(at, at + 1)

    def _address(self, at: int) -> int | None:
        match = _ADDRESS.match(self._text, at)
        if match is None:
            if not self._final and _OPEN_ADDRESS.match(self._text, at):
                return None
            return self._keep(at, at + 1)
        if match.end() == len(self._text) and not self._final:
            return None
        marks = _ADDRESS_END.search(match[0])
        assert marks is not None
        end = at + marks.start()
        if match[0].count("(") > match[0][: marks.start()].count(")"):
            end += match[0][marks.start() :].startswith(")")
        host = _host(self._text[at:end])
        if not host:
            return self._keep(at, end)
        self._replace(host, at, end)
        return end

    def _awaits_more(self, end: int, at: int, limit: int = _MAX_HELD) -> bool:
        """Whether to hold the text back from `at` on, because more text may follow at `end`."""
        return end == len(self._text) and not self._final and end - at < limit

    def _may_be_footnote(self, at: int) -> bool:
        return not any(character in "] \n" for character in self._text[at:])

    def _keep(self, begin: int, end: int) -> int:
        self._parts.append(Traced.of(self._text[begin:end], self._offset + begin))
        return end

    def _replace(self, text: str, begin: int, end: int) -> None:
        if text:
            self._parts.append(Traced.instead(text, self._offset + begin, self._offset + end))

    _HANDLERS: ClassVar[dict[str, Callable[[Cleaner, int], int | None]]] = {
        "\n": _newline,
        "\\": _escape,
        "[": _bracket,
        "]": _close_bracket,
        "!": _image,
        "<": _tag,
        "&": _entity,
        "|": _cell,
        "#": _hash,
        **dict.fromkeys("*_~`", _marks),
        **dict.fromkeys("hHwWfF", _address),
    }


class Verbatim:
    """Has the methods of a Cleaner, and returns the text unchanged."""

    def __init__(self) -> None:
        self.num_read = 0

    def feed(self, text: str) -> Traced:
        """Return all of `text`."""
        start, self.num_read = self.num_read, self.num_read + len(text)
        return Traced.of(text, start)

    def finish(self) -> Traced:
        """Return an empty text: nothing was held back."""
        return Traced()


def _marks_kept(run: str, before: str, after: str) -> str:
    """What replaces a run of one mark between two characters. Arithmetic signs stay."""
    words = before.isalnum() and after.isalnum()
    alone = not before.strip() and not after.strip()
    if run == "*":
        return "*" if alone or (before.isdigit() and after.isdigit()) else " " * words
    if run == "~":
        return "~"
    return " " * words


def _host(address: str) -> str:
    match = _HOST.match(address)
    return match[1] if match else ""


def cleaned(text: str, code_announcement: str) -> Traced:
    """Remove the markup of a whole text. `code_announcement` replaces each block of code."""
    cleaner = Cleaner(code_announcement)
    return Traced.joined([cleaner.feed(text), cleaner.finish()])
