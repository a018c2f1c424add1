"""English number words: cardinals, ordinals, single digits, years, Roman numerals."""

from __future__ import annotations

import re

MAX_DIGITS = 15  # longer numbers are spoken digit by digit

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ("", " thousand", " million", " billion", " trillion")
_IRREGULAR = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ROMAN_FORM = re.compile(r"C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")


def cardinal(number: int) -> str:
    """A cardinal, such as "forty-two". A number of more than `MAX_DIGITS` digits: its digits."""
    if len(str(number)) > MAX_DIGITS:
        return digits(str(number))
    if number == 0:
        return _SMALL[0]
    groups: list[str] = []
    scale = 0
    while number:
        number, group = divmod(number, 1000)
        if group:
            groups.insert(0, _below_1000(group) + _SCALES[scale])
        scale += 1
    return " ".join(groups)


def _below_1000(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_SMALL[hundreds]} hundred"] if hundreds else []
    if rest >= 20:
        ten, one = divmod(rest, 10)
        words.append(_TENS[ten - 2] + (f"-{_SMALL[one]}" if one else ""))
    elif rest:
        words.append(_SMALL[rest])
    return " ".join(words)


def ordinal(number: int) -> str:
    """An ordinal, such as "forty-second"."""
    head, last = _split_last(cardinal(number))
    if last in _IRREGULAR:
        return head + _IRREGULAR[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def plural(words: str) -> str:
    """The plural of number words, such as "nineties" or "hundreds"."""
    head, last = _split_last(words)
    if last.endswith("y"):
        return f"{head}{last[:-1]}ies"
    return head + last + ("es" if last.endswith("x") else "s")


def _split_last(words: str) -> tuple[str, str]:
    at = max(words.rfind(" "), words.rfind("-")) + 1
    return words[:at], words[at:]


def digits(text: str) -> str:
    """Single digits, such as "zero zero seven". Other characters are left out."""
    return " ".join(_SMALL[int(digit)] for digit in text if digit.isdecimal())


def number(text: str) -> str:
    """The words of a written number such as "1,234.50". With leading zeros: digit by digit."""
    whole, _, part = text.replace(",", "").replace("_", "").replace(" ", "").partition(".")
    if len(whole) > MAX_DIGITS or (len(whole) > 1 and whole.startswith("0")):
        words = digits(whole)
    else:
        words = cardinal(int(whole or "0"))
    return f"{words} point {digits(part)}" if part else words


def year(text: str) -> str:
    """A year of four digits: "nineteen oh five", "two thousand five", "twenty twenty-four"."""
    century, rest = int(text[:2]), int(text[2:])
    if century % 10 == 0 and rest < 10:
        return cardinal(century * 100 + rest)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def roman(text: str) -> int | None:
    """The value of a Roman numeral below 400; None if the text is not one."""
    if not text or not _ROMAN_FORM.fullmatch(text):
        return None
    values = [_ROMAN[letter] for letter in text]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
