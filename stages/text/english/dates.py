"""Rules for dates, years, decades and times of day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.text.english.abbreviations import MONTHS, SHORT_MONTHS
from stages.text.english.numbers import cardinal, number, ordinal, plural, year
from stages.text.english.rule import DASH, Rule, one_of, rule

if TYPE_CHECKING:
    import re

_DAYS = {
    day[:length]: day
    for day in ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    for length in (3, 4 if day[0] in "TW" else 3)
} | {"Thurs": "Thursday"}
_MONTH = one_of([*MONTHS, *(f"{short}." for short in SHORT_MONTHS), *SHORT_MONTHS])
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_YEAR = r"(?:1\d|20)\d\d"
_AM_PM = r"\s?(?P<am_pm>[ap])(?:\.\s?m\.?|m\b)"

# A bare number of four digits is a year after one of these words. Before `_COUNTED` or a plural it
# counts things. A plural is a word that ends with "s" and is not in `_VERBS`.
_BEFORE_YEAR = (
    "in", "since", "by", "from", "until", "till", "before", "after", "during", "of", "year",
    "circa", "early", "late", "mid", "spring", "summer", "autumn", "fall", "winter", "between",
    "and", "to", "copyright",
)  # fmt: skip
_COUNTED = "people|men|women|children|of|or|per|percent|points?|dollars|more|other"
_VERBS = "was|is|has|does|this|as|its|always|thus|perhaps|plus|across|versus|less"


def month(written: str) -> str:
    """The full name of a month or of its abbreviation."""
    short = written.rstrip(".")
    return SHORT_MONTHS.get(short, short)


def _date(match: re.Match[str]) -> str:
    """Month, day and an optional year, in this order."""
    words = f"{month(match['month'])} {ordinal(int(match['day']))}"
    return f"{words}, {year(match['year'])}" if match["year"] else words


def _day_first(match: re.Match[str]) -> str:
    words = f"{ordinal(int(match['day']))} {month(match['month'])}"
    return f"{words} {year(match['year'])}" if match["year"] else words


def _month_only(match: re.Match[str]) -> str | None:
    if match["year"]:
        return f"{month(match['month'])} {year(match['year'])}"
    return month(match["month"]) if match["month"].endswith(".") else None


def _numbered(match: re.Match[str]) -> str | None:
    """2024-11-29, 11/29/2024, 3/14/15. The first number is the day if it cannot be a month."""
    first, second, written = int(match["a"]), int(match["b"]), match["year"]
    if first > 12 and match["sep"] == "/":
        first, second = second, first
    if not (1 <= first <= 12 and 1 <= second <= 31):
        return None
    full_year = written if len(written) == 4 else f"20{written}"
    return f"{MONTHS[first - 1]} {ordinal(second)}, {year(full_year)}"


def _am_pm(match: re.Match[str]) -> str:
    return f" {match['am_pm'].upper()}.M." if match["am_pm"] else ""


def _clock(match: re.Match[str]) -> str | None:
    hour, minute, second = int(match["hour"]), int(match["minute"]), match["second"]
    if hour > 24 or minute > 59 or int(second or 0) > 59:
        return None
    words = cardinal(hour)
    if minute:
        words += f" {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    elif hour <= 12 and not match["am_pm"] and not second:
        words += " o'clock"
    return words + (f" {cardinal(int(second))}" if second else "") + _am_pm(match)


def _hour(match: re.Match[str]) -> str | None:
    if int(match["hour"]) > 24:
        return None
    low = f"{cardinal(int(match['low']))} to " if match["low"] else ""
    return low + cardinal(int(match["hour"])) + _am_pm(match)


def _decade(match: re.Match[str]) -> str:
    written = match["decade"]
    return plural(year(written) if len(written) == 4 else cardinal(int(written)))


def _year(match: re.Match[str]) -> str | None:
    is_year = match["before"] or match["era"]
    if not is_year and (match["counted"] or int(match["it"]) < 1500):
        return None
    return year(match["it"])


RULES: tuple[Rule, ...] = (
    rule(r"\b(?P<it>Mon|Tues?|Wed|Thurs?|Fri)\.(?=\s+[a-z])", lambda m: _DAYS[m["it"]]),
    rule(rf"\b(?P<it>{one_of(_DAYS)})\.(?=,|\s+[A-Z\d])", lambda m: _DAYS[m["it"]]),
    rule(rf"\b(?P<year>{_YEAR})(?P<sep>-)(?P<a>\d\d)-(?P<b>\d\d)\b(?!-)", _numbered),
    rule(r"(?<![\d/])(?P<a>\d\d?)(?P<sep>/)(?P<b>\d\d?)/(?P<year>\d{4}|\d\d)(?![\d/])", _numbered),
    rule(
        rf"\b(?P<month>{_MONTH})\s(?P<day>{_DAY})(?:st|nd|rd|th)?(?![\d:.]\d|\d|%|[a-z])"
        rf"(?:,?\s(?P<year>{_YEAR})\b(?!,?\d))?",
        _date,
    ),
    rule(
        rf"(?<![\d.,$])(?P<day>{_DAY})(?:st|nd|rd|th)?\s(?:of\s)?(?P<month>{_MONTH})(?![a-z])"
        rf"(?:,?\s(?P<year>{_YEAR})\b)?",
        lambda m: None if m["month"] == "May" and not m["year"] else _day_first(m),
    ),
    rule(rf"\b(?P<month>{_MONTH})(?![a-z])(?:,?\s(?P<year>{_YEAR})\b(?!\.\d|,\d))?", _month_only),
    rule(
        rf"(?<![\w:.])(?:(?P<low>\d\d?){DASH})?(?P<hour>\d\d?){_AM_PM}",
        _hour,
        ignore_case=True,
    ),
    rule(
        rf"(?<![\d:.])(?P<hour>\d\d?)[:.](?P<minute>\d\d)(?P<second>(?!))?{_AM_PM}",
        _clock,
        ignore_case=True,
    ),
    rule(
        r"(?<![\d:.])(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?P<am_pm>(?!))?(?![\d:])",
        _clock,
    ),
    rule(
        rf"(?<![\d,.$])(?P<a>{_YEAR}){DASH}(?P<b>{_YEAR})(?![\d,.]\d|\d)",
        lambda m: f"{year(m['a'])} to {year(m['b'])}",
    ),
    rule(r"(?<![\w.,])['\u2019]?(?P<decade>(?:1\d|20)\d0|[2-9]0)['\u2019]?s\b", _decade),
    rule(
        rf"(?P<before>\b(?:{'|'.join(_BEFORE_YEAR)})\s|\u00a9\s?)?"
        rf"(?<![\w.,$\u20ac\u00a3#-])(?P<it>{_YEAR})(?![\w%]|[.,:/-]\d)"
        rf"(?P<era>\s(?:BC|AD|BCE|CE)\b)?"
        rf"(?P<counted>\s(?:{_COUNTED})\b|\s(?!(?:{_VERBS})\b)[a-z]+s\b)?",
        _year,
        ignore_case=True,
    ),
    rule(r"\d\s(?P<it>BCE|BC|AD|CE)\b", lambda m: "".join(f"{letter}." for letter in m["it"])),
    rule(r"(?i:\b(?:call|dial))\s(?P<it>\d11)\b", lambda m: " ".join(map(number, m["it"]))),
)
