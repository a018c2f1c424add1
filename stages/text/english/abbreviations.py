"""English abbreviations and month names, and what each is read as.

The rules of this package write them out. `stages/text/breaks.py` uses the same tables to decide
whether the dot after a word ends a sentence.
"""

from __future__ import annotations

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
SHORT_MONTHS = {month[:3]: month for month in MONTHS} | {"Sept": "September"}

# Titles stand before a name, with or without a dot.
TITLES = {
    "Dr": "Doctor", "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Prof": "Professor",
    "Gen": "General", "Gov": "Governor", "Sen": "Senator", "Rep": "Representative",
    "Sgt": "Sergeant", "Capt": "Captain", "Col": "Colonel", "Lt": "Lieutenant", "Rev": "Reverend",
    "Hon": "Honorable", "St": "Saint", "Mt": "Mount", "Ft": "Fort",
}  # fmt: skip
# Streets stand after a name. "St" and "Dr" are titles too.
STREETS = {
    "St": "Street", "Dr": "Drive", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road",
    "Ln": "Lane", "Hwy": "Highway", "Pkwy": "Parkway", "Sq": "Square",
}  # fmt: skip
# Counters stand before a number, with a dot.
COUNTERS = {
    "No": "number", "no": "number", "Nos": "numbers", "Fig": "figure", "fig": "figure",
    "Figs": "figures", "p": "page", "pp": "pages", "vol": "volume", "Vol": "volume",
    "ch": "chapter", "Ch": "chapter", "sec": "section", "Sec": "section", "Eq": "equation",
    "eq": "equation", "min": "minimum", "max": "maximum", "Rm": "room", "Apt": "apartment",
}  # fmt: skip
# These have a dot and may stand anywhere. They never end a sentence.
INNER_WORDS = {
    "vs": "versus", "approx": "approximately", "avg": "average", "est": "established",
    "cf": "compare",
}  # fmt: skip
# These have a dot and may stand anywhere. The dot may end a sentence too.
CLOSING_WORDS = {
    "etc": "etcetera", "Inc": "Incorporated", "Corp": "Corporation", "Ltd": "Limited",
    "Co": "Company", "Jr": "Junior", "Sr": "Senior", "Dept": "Department", "dept": "department",
    "Bros": "Brothers", "Univ": "University",
}  # fmt: skip
# These have a dot and may stand anywhere. Sentence breaks have no rule for them.
OTHER_WORDS = {
    "tel": "telephone", "misc": "miscellaneous", "incl": "including", "excl": "excluding",
    "e.g": "for example", "i.e": "that is", "viz": "namely", "ext": "extension",
    "Assn": "Association",
}  # fmt: skip
