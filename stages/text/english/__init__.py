"""English as it is spoken: numbers, dates, money, measures, names and signs written out.

Rules in a fixed order over one piece of text, so that time is linear in the text. Packages for
this were measured first (docs/decisions/0027-own-english-rules.md): the best reads 68% of the test
table right, at 20 to 40 ms each, and none says which words stand for what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stages.text.english import amounts, dates, names, signs

if TYPE_CHECKING:
    from stages.text.traced import Traced

_RULES = (*names.RULES, *dates.RULES, *amounts.RULES, *signs.RULES, *amounts.NUMBERS)
_SPACES = re.compile(r" {2,}")


def normalised(text: Traced) -> Traced:
    """`text` with everything written out that is not read as it is written."""
    for rule in _RULES:
        text = text.sub(rule.pattern, rule.said)
    return text.sub(_SPACES, lambda _: " ")
