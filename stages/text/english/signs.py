"""Rules for signs with a name: mathematics, Greek letters, arrows, slashes between words."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from stages.text.english.rule import Rule, one_of, rule

if TYPE_CHECKING:
    import re

_GREEK = {
    "\u03b1": "alpha", "\u03b2": "beta", "\u03b3": "gamma", "\u03b4": "delta", "\u03b5": "epsilon",
    "\u03b6": "zeta", "\u03b7": "eta", "\u03b8": "theta", "\u03b9": "iota", "\u03ba": "kappa",
    "\u03bb": "lambda", "\u03bc": "mu", "\u03bd": "nu", "\u03be": "xi", "\u03c0": "pi",
    "\u03c1": "rho", "\u03c3": "sigma", "\u03c4": "tau", "\u03c5": "upsilon", "\u03c6": "phi",
    "\u03c7": "chi", "\u03c8": "psi", "\u03c9": "omega", "\u03bf": "omicron", "\u03c2": "sigma",
}  # fmt: skip
_NAMED_SIGNS = {
    "\u00d7": "times", "\u00f7": "divided by", "\u2212": "minus", "\u00b1": "plus or minus",
    "=": "equals", "\u2260": "is not equal to", "\u2248": "approximately",
    "\u2264": "is less than or equal to", "\u2265": "is greater than or equal to",
    "<=": "is less than or equal to", ">=": "is greater than or equal to", "!=": "is not equal to",
    "==": "equals", "\u2192": "to", "->": "to", "=>": "to", "\u2190": "from", "\u00a7": "section",
    "\u00a9": "copyright", "\u00ae": "", "\u2122": "", "\u221e": "infinity",
    "\u221a": "square root of", "\u2030": "per mille", "\u00b0": "degrees", "\u2211": "sum",
    "\u00b7": "",
}  # fmt: skip
_ASCII_SIGNS = {
    "<": "is less than", ">": "is greater than", "+": "plus", "*": "times", "/": "divided by",
    "^": "to the power of", "~": "about",
}  # fmt: skip
_SIGN_PATTERN = one_of(_NAMED_SIGNS)


def _greek(match: re.Match[str]) -> str:
    return f" {_GREEK[match[0].lower()]} "


def _power(match: re.Match[str]) -> str:
    """The exponent of x^2 or x\u00b2."""
    power = unicodedata.normalize("NFKC", match["power"]).replace("\u2212", "-")
    power = power.replace("-", "minus ")
    return {"2": " squared", "3": " cubed"}.get(power, f" to the power of {power}")


RULES: tuple[Rule, ...] = (
    rule(r"\b(?P<it>C\+\+)", "C plus plus"),
    rule(r"\b(?P<it>[CF]#)", lambda m: f"{m[0][0]} sharp"),
    rule(r"(?<!\w)(?P<it>\.NET)\b", "dot net"),
    rule(
        r"(?<=[^\W\u00b2\u00b3]|\))(?P<power>[\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+)",
        _power,
    ),
    rule(r"(?<=[\w)])\s?\^\s?(?P<power>-?\d+)", _power),
    rule(
        r"\b(?P<a>\d+(?:\.\d+)?)[eE][+]?(?P<b>-?\d{1,3})\b",
        lambda m: f"{m['a']} times ten to the power of {m['b']}",
    ),
    rule(r"(?<=\d)(?P<it>:)(?=\d)", " to "),
    rule(r"\s?(?P<it>~)\s?(?=\d)", " about "),
    rule(r"(?<=[\w)])\s(?P<it>[<>*/^])\s(?=[\w(-])", lambda m: f" {_ASCII_SIGNS[m['it']]} "),
    rule(r"(?<=[\w)])\s?(?P<it>\+)\s?(?=[\w(])", " plus "),
    rule(r"(?<=\d)(?P<it>\*)(?=\d)", " times "),
    rule(r"(?<=[^\W\d])(?P<it>/)(?=[^\W\d])", " "),
    rule(rf"(?P<it>{_SIGN_PATTERN})", lambda m: f" {_NAMED_SIGNS[m[0]]} "),
    rule(r"[\u0391-\u03a9\u03b1-\u03c9]", lambda m: _greek(m) if m[0].lower() in _GREEK else None),
    rule(r"(?<=[^\W\d])(?P<it>_+)(?=\w)|(?<=\w)(?P<left>_)(?=[^\W\d])", " "),
    rule(r"[{}|\\^`~<>]|(?<!\w)_+|_+(?!\w)", " "),
)
