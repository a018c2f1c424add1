"""Rules for money, percentages, measures, fractions, versions, phone and other numbers."""

from __future__ import annotations

import re

from stages.text.english.numbers import MAX_DIGITS, cardinal, digits, number, ordinal, plural
from stages.text.english.rule import DASH, NUMBER, Rule, one_of, rule

# The singular, the plural, and the name of a hundredth ("" if there is none).
_CURRENCIES = {
    "$": ("dollar", "dollars", "cent"),
    "\u00a3": ("pound", "pounds", "penny"),
    "\u20ac": ("euro", "euros", "cent"),
    "\u00a5": ("yen", "yen", ""),
    "\u20b9": ("rupee", "rupees", "paisa"),
    "\u20a9": ("won", "won", ""),
    "\u20bd": ("ruble", "rubles", "kopek"),
}
_CURRENCY_CODES = {
    "USD": "U.S. dollars",
    "EUR": "euros",
    "GBP": "pounds",
    "JPY": "yen",
    "CHF": "Swiss francs",
    "CAD": "Canadian dollars",
    "AUD": "Australian dollars",
    "INR": "rupees",
    "CNY": "yuan",
}
_PLURAL_CENTS = {"penny": "pence", "paisa": "paise"}
_SCALES = {
    "k": "thousand",
    "K": "thousand",
    "M": "million",
    "m": "million",
    "mn": "million",
    "B": "billion",
    "b": "billion",
    "bn": "billion",
    "T": "trillion",
    "tn": "trillion",
}
_SCALE = rf"(?:\s?(?P<word>thousand|million|billion|trillion)\b|(?P<short>{one_of(_SCALES)})\b)?"
_CURRENCY_SIGN = "[$\u00a3\u20ac\u00a5\u20b9\u20a9\u20bd]"

# A unit and its name: the singular, then "/" and the plural if an "s" does not make it.
_UNITS = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter",
    "\u00b5m": "micrometer", "nm": "nanometer",
    "mi": "mile", "ft": "foot/feet", "yd": "yard", "in": "inch/inches",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "\u00b5g": "microgram",
    "lb": "pound", "lbs": "pound", "oz": "ounce", "l": "liter", "L": "liter", "ml": "milliliter",
    "mL": "milliliter", "cl": "centiliter", "gal": "gallon",
    "KB": "kilobyte", "kB": "kilobyte", "MB": "megabyte", "GB": "gigabyte",
    "TB": "terabyte", "PB": "petabyte", "MiB": "mebibyte", "GiB": "gibibyte", "KiB": "kibibyte",
    "kbps": "kilobit/kilobits per second", "Mbps": "megabit/megabits per second",
    "Gbps": "gigabit/gigabits per second", "kbit": "kilobit", "Mbit": "megabit",
    "Hz": "hertz/hertz", "kHz": "kilohertz/kilohertz", "MHz": "megahertz/megahertz",
    "GHz": "gigahertz/gigahertz", "W": "watt", "kW": "kilowatt", "MW": "megawatt",
    "kWh": "kilowatt hour", "Wh": "watt hour", "V": "volt", "mV": "millivolt",
    "mA": "milliamp", "mAh": "milliamp hour", "kJ": "kilojoule", "kcal": "kilocalorie",
    "cal": "calorie", "Pa": "pascal", "hPa": "hectopascal", "kPa": "kilopascal",
    "bar": "bar", "dB": "decibel", "\u03a9": "ohm", "ns": "nanosecond", "\u00b5s": "microsecond",
    "ms": "millisecond", "s": "second", "sec": "second", "secs": "second", "min": "minute",
    "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "yr": "year", "yrs": "year",
    "mph": "mile/miles per hour", "kph": "kilometer/kilometers per hour", "kn": "knot",
    "rpm": "revolution/revolutions per minute", "fps": "frame/frames per second",
    "ha": "hectare", "px": "pixel", "pt": "point", "ppm": "part/parts per million",
    "mol": "mole", "tsp": "teaspoon", "tbsp": "tablespoon", "pcs": "piece",
}  # fmt: skip
_NEVER_APART = {"in", "pt"}  # have other meanings too: units only right behind the number
_PER_UNITS = {
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "day": "day",
    "week": "week", "month": "month", "year": "year", "m": "meter", "kg": "kilogram",
    "l": "liter", "L": "liter",
}  # fmt: skip
_POWERS = {"\u00b2": "square", "2": "square", "\u00b3": "cubic", "3": "cubic"}

_FRACTIONS = {
    "\u00bd": "1/2", "\u2153": "1/3", "\u2154": "2/3", "\u00bc": "1/4", "\u00be": "3/4",
    "\u2155": "1/5", "\u2156": "2/5", "\u2157": "3/5", "\u2158": "4/5", "\u2159": "1/6",
    "\u215a": "5/6", "\u215b": "1/8", "\u215c": "3/8", "\u215d": "5/8", "\u215e": "7/8",
}  # fmt: skip
_SOFTWARE = (
    "version", "release", "Python", "Java", "iOS", "Android", "macOS", "Windows", "Linux", "Ubuntu",
    "Debian", "Node", "PHP", "Ruby", "Rust", "Go", "Kotlin", "Swift", "Django", "React", "Chrome",
    "Firefox", "PostgreSQL", "MySQL", "CUDA", "PyTorch", "USB", "Bluetooth", "HTTP", "TLS", "GPT",
    "kernel",
)  # fmt: skip


def _money(match: re.Match[str]) -> str:
    one, several, cent = _CURRENCIES[match["sign"]]
    amount = match["amount"]
    whole, _, part = amount.replace(",", "").partition(".")
    scale = match["word"] or _SCALES.get(match["short"] or "")
    minus = "minus " if match["minus"] else ""
    high = match["high"]
    if scale:
        return f"{minus}{number(amount)} {scale} {several}"
    if high:
        return f"{minus}{number(amount)} to {number(high)} {several}"
    if len(part) != 2 or not cent:
        return f"{minus}{number(amount)} {one if amount == '1' else several}"
    return minus + _dollars_and_cents(int(whole or "0"), int(part), match["sign"])


def _dollars_and_cents(whole: int, hundredths: int, sign: str) -> str:
    one, several, cent = _CURRENCIES[sign]
    words = []
    if whole or not hundredths:
        words.append(f"{cardinal(whole)} {one if whole == 1 else several}")
    if hundredths:
        cents = _PLURAL_CENTS.get(cent, f"{cent}s")
        words.append(f"{cardinal(hundredths)} {cent if hundredths == 1 else cents}")
    return " and ".join(words)


def _money_sign_last(match: re.Match[str]) -> str:
    names = _CURRENCIES[match["sign"]]
    return f"{number(match['amount'])} {names[0] if match['amount'] == '1' else names[1]}"


def _unit_name(amount: str, names: str) -> str:
    """The singular or plural of a unit. `names` is a value of `_UNITS`."""
    one, _, several = names.partition("/")
    first, _, rest = one.partition(" ")
    per = several.partition(" per ")[2]
    if amount == "1":
        return one + (f" per {per}" if per else "")
    return several or (f"{first} {rest}s" if rest else f"{one}s")


def _measure(match: re.Match[str]) -> str | None:
    unit, gap = match["unit"], match["gap"]
    if unit in _NEVER_APART and gap:
        return None
    power = _POWERS.get(match["power"] or "", "")
    words = f"{power} {_unit_name(match['amount'], _UNITS[unit])}".strip()
    per = f" per {_PER_UNITS[match['per']]}" if match["per"] else ""
    low = f"{number(match['low'])} to " if match["low"] else ""
    return f"{low}{number(match['amount'])} {words}{per}"


def _degrees(match: re.Match[str]) -> str:
    name = {"C": " Celsius", "F": " Fahrenheit", "": ""}[match["scale"] or ""]
    several = "degree" if match["amount"] == "1" else "degrees"
    low = f"{number(match['low'])} to " if match["low"] else ""
    return f"{low}{number(match['amount'])} {several}{name}"


def _feet(match: re.Match[str]) -> str:
    feet = "foot" if match["feet"] == "1" else "feet"
    inches = "inch" if match["inches"] == "1" else "inches"
    return f"{number(match['feet'])} {feet} {number(match['inches'])} {inches}"


def _inches(match: re.Match[str]) -> str | None:
    if match.string.count('"', 0, match.start()) % 2:
        return None  # the quote closes a quotation
    return f"{number(match['amount'])} inch{'' if match['amount'] == '1' else 'es'}"


def _fraction(top: int, bottom: int) -> str:
    name = {2: "half", 4: "quarter"}.get(bottom, ordinal(bottom))
    several = {2: "halves"}.get(bottom, plural(name))
    return f"{cardinal(top)} {name if top == 1 else several}"


def _mixed(match: re.Match[str]) -> str | None:
    top, bottom = map(int, _FRACTIONS.get(match["part"], match["part"]).split("/"))
    if not (0 < top < bottom <= 100):
        return None
    if not match["whole"]:
        return _fraction(top, bottom)
    part = "a half" if (top, bottom) == (1, 2) else _fraction(top, bottom)
    return f"{number(match['whole'])} and {part}"


def _version(match: re.Match[str]) -> str:
    return " point ".join(map(number, match["it"].lstrip("v").split(".")))


def _ip_address(match: re.Match[str]) -> str:
    return " dot ".join(map(digits, match[0].split(".")))


def _phone(match: re.Match[str]) -> str:
    plus = "plus " if match[0].startswith("+") else ""
    return plus + ", ".join(digits(group) for group in re.findall(r"\d+", match[0]))


def _ordinal(match: re.Match[str]) -> str | None:
    whole = match["whole"].replace(",", "")
    return ordinal(int(whole)) if len(whole) <= MAX_DIGITS else None


def _plain(match: re.Match[str]) -> str:
    """A number, with spaces between it and the letters around it ("MP3")."""
    left = " " if match["left"] is not None else ""
    right = " " if match["right"] is not None else ""
    return left + number(match[0]) + right


RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]\d|\w)", _ip_address),
    rule(
        r"(?<![\w.-])(?:(?:\+?\d{1,3}[ .-])?(?:\(\d{3}\)\s?|\d{3}[ .-])\d{3}[.-]\d{4}"
        r"|\d{3}-\d{4}|\+\d{1,3}(?:[ -]\d{2,4}){2,5})(?![\w-]|\.\d)",
        _phone,
    ),
    rule(r"(?<!\w)(?P<it>v\d+(?:\.\d+)*)(?![\w])", lambda m: f"version {_version(m)}"),
    rule(rf"\b{one_of(_SOFTWARE)}[ -](?P<it>v?\d+(?:\.\d+)+)(?!\w)", _version),
    rule(r"(?<![\w.])(?P<it>\d+(?:\.\d+){2,})(?![\w.]\d|\w)", _version),
    rule(
        rf"(?P<minus>[-\u2212]\s?)?(?:US|CA|AU|NZ|HK|(?<![A-Za-z]))(?P<sign>{_CURRENCY_SIGN})\s?"
        rf"(?P<amount>{NUMBER})(?:{DASH}{_CURRENCY_SIGN}?(?P<high>{NUMBER}))?{_SCALE}",
        _money,
    ),
    rule(r"(?<![\w)\]%.,])(?:-|\u2212\s?)(?=\.?\d)", "minus "),
    rule(r"(?<![\w)\]])\+(?=\.?\d)", "plus "),
    rule(rf"(?P<amount>{NUMBER})\s?(?P<sign>{_CURRENCY_SIGN})(?!\d)", _money_sign_last),
    rule(rf"(?P<amount>{NUMBER})\s?\u00a2", lambda m: f"{number(m['amount'])} cents"),
    rule(
        rf"(?P<amount>{NUMBER})\s(?P<code>{one_of(_CURRENCY_CODES)})\b",
        lambda m: f"{number(m['amount'])} {_CURRENCY_CODES[m['code']]}",
    ),
    rule(
        rf"(?:(?P<low>{NUMBER})%?{DASH})?(?P<amount>{NUMBER})\s?%",
        lambda m: (
            (f"{number(m['low'])} to " if m["low"] else "") + number(m["amount"]) + " percent"
        ),
    ),
    rule(
        rf"(?:(?P<low>{NUMBER}){DASH})?(?P<amount>{NUMBER})\s?[\u00b0\u00ba](?:\s?(?P<scale>[CF])\b)?",
        _degrees,
    ),
    rule(r"(?<![\w.])(?P<feet>\d{1,2})['\u2019]\s?(?P<inches>\d\d?)(?:\"|''|\u201d)", _feet),
    rule(rf"(?<![\w.\"])(?P<amount>{NUMBER})\"(?=[\s,.)]|$)", _inches),
    rule(
        rf"(?<![\w.])(?<!\w-)(?:(?P<low>{NUMBER}){DASH})?(?P<amount>{NUMBER})(?P<gap>\s?)"
        rf"(?P<unit>{one_of(_UNITS)})(?P<power>[\u00b2\u00b3]|\^?[23](?!\d))?"
        rf"(?:/(?P<per>{one_of(_PER_UNITS)}))?(?![\w\u00b2\u00b3'\u2019&-])",
        _measure,
    ),
    rule(r"\b24/7\b", "twenty-four seven"),
    rule(r"\b9/11\b", "nine eleven"),
    rule(r"\b(?P<one>\d{1,3})/(?P=one)\b", lambda m: f"{number(m['one'])} {number(m['one'])}"),
    rule(
        rf"(?<![\w./])(?:(?P<whole>\d+)\s?(?=\d+/|[{''.join(_FRACTIONS)}])(?<=[\s\d]))?"
        rf"(?P<part>[{''.join(_FRACTIONS)}]|\d{{1,2}}/\d{{1,3}})(?![\w/]|\.\d)",
        _mixed,
    ),
    rule(r"(?<![\w.,])(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)\b", _ordinal),
    rule(r"(?<=\d)(?<!\b0)\s?(?P<it>[x\u00d7])\s?(?=\d)", " by "),
    rule(r"(?<=\d)\s?-\s?(?=\d+\s?=)", " minus "),
    rule(r"(?<=[AP]\.M\.)\s?[-\u2013]\s?(?=\w)", " to "),
    rule(
        rf"(?<![\w.-])(?P<a>{NUMBER}){DASH}(?P<b>{NUMBER})(?!\s?=|-?\w)",
        lambda m: f"{number(m['a'])} to {number(m['b'])}",
    ),
)

NUMBERS: tuple[Rule, ...] = (
    rule(r"(?<=[A-Za-z])(?P<it>-)(?=\d)", " "),
    rule(r"(?<![\d.])\.(?P<part>\d+)", lambda m: f"point {digits(m['part'])}"),
    rule(
        r"(?<!\d)\d{1,3}(?:[\u202f\u00a0 ]\d{3})+(?![\w.]\d|\w)",
        lambda m: number(re.sub(r"\s", "", m[0])),
    ),
    rule(r"(?<![\w])\d{1,3}(?:_\d{3})+(?!\w)", lambda m: number(m[0])),
    rule(rf"(?P<left>(?<=[^\W\d_]))?{NUMBER}(?P<right>(?=[^\W\d_]))?", _plain),
)
