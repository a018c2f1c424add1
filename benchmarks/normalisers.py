"""Scores packages that write numbers as words, on the table that the tests use.

Run `python benchmarks/normalisers.py` in an environment that has the packages; the server needs
none of them. For each it prints the share of the table that it reads correctly, its time per case,
and its time for one long number. Arguments select packages; `-v` prints each wrong reading.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

TABLE = Path(__file__).parent.parent / "tests/stages/text/english/normalisation_cases.tsv"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def cases():
    """Kind, text and accepted readings of each row."""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            kind, written, spoken = line.split("\t")
            yield kind, written, spoken.split("|")


def canon(text):
    """The canonical form of a reading: its words, with the letters of an acronym joined."""
    words = re.sub(r"[^\w\s']|_", " ", text.lower().replace("\u2019", "'")).split()
    out = []
    for at, word in enumerate(words):
        if word == "and" and at and words[at - 1] in ("hundred", "thousand", "million"):
            continue
        single = len(word) == 1 and word.isalpha()
        if single and out and out[-1][1]:
            out[-1] = (out[-1][0] + word, True)
        else:
            out.append((word, single or (len(word) < 6 and word.isalpha() and word not in SMALL)))
    return " ".join(word for word, _ in out)


SMALL = {"the", "an", "at", "two", "and", "on", "in", "of", "pm"}


def num2words_only():
    words = import_module("num2words").num2words
    return lambda text: NUMBER.sub(lambda m: words(m[0].replace(",", "")), text)


def inflect_only():
    words = import_module("inflect").engine().number_to_words
    return lambda text: NUMBER.sub(lambda m: words(m[0], andword=""), text)


def nemo():
    module = import_module("nemo_text_processing.text_normalization.normalize")
    return module.Normalizer(input_case="cased", lang="en").normalize


def wetextprocessing():
    return import_module("tn.english.normalizer").Normalizer().normalize


def wetext():
    return import_module("wetext").Normalizer(lang="en", operator="tn").normalize


def kitten():
    return lambda text: import_module("kitten_text_processing").normalize_text(text, "en")


def module(name, **options):
    return lambda: lambda text: import_module(name).normalize(text, **options)


def spokenform():
    prepare = import_module("spokenform").prepare_text
    return lambda text: str(getattr(r := prepare(text, "en"), "text", r))


def brighto():
    made = import_module("brighto_norm4tts")
    return lambda text: made.normalize(text, "en")


def ours():
    sys.path.insert(0, str(TABLE.parents[4]))
    read = import_module("stages.text.english").normalised
    traced = import_module("stages.text.traced").Traced
    return lambda text: read(traced.of(text)).text


CANDIDATES = {
    "as it is": lambda: lambda text: text,
    "ours": ours,
    "num2words": num2words_only,
    "inflect": inflect_only,
    "nemo-text-processing": nemo,
    "WeTextProcessing": wetextprocessing,
    "wetext": wetext,
    "kitten-text-processing": kitten,
    "normt2s": module("normt2s", lang="en"),
    "voxnorm": module("voxnorm", lang="en"),
    "utterwise": module("utterwise"),
    "spokenform": spokenform,
    "brighto-norm4tts": brighto,
}


def score(name, make, table, verbose):
    began = time.perf_counter()
    try:
        read = make()
        read("one 1")
    except Exception as error:  # noqa: BLE001 - whatever a package raises
        print(f"{name:24} not installed: {type(error).__name__} {str(error)[:80]}")
        return
    load_s = time.perf_counter() - began
    right, of, began = Counter(), Counter(), time.perf_counter()
    for kind, written, spoken in table:
        try:
            heard = canon(read(written))
        except Exception as error:  # noqa: BLE001 - whatever a package raises
            heard = type(error).__name__
        good = heard in {canon(one) for one in spoken}
        right[kind] += good
        of[kind] += 1
        if verbose and not good:
            print(f"   {kind}: {written!r} -> {heard!r}, not {canon(spoken[0])!r}")
    each_ms = (time.perf_counter() - began) / len(table) * 1000
    began = time.perf_counter()
    try:
        read("1" * 4000)
        long_s = f"{time.perf_counter() - began:.2f} s"
    except Exception as error:  # noqa: BLE001 - whatever a package raises
        long_s = type(error).__name__
    share = sum(right.values()) / len(table)
    print(f"{name:24} {share:6.1%} {each_ms:7.2f} ms, load {load_s:.1f} s, 4,000 digits {long_s}")
    print("   ", ", ".join(f"{kind} {right[kind]}/{of[kind]}" for kind in of))


if __name__ == "__main__":
    selected = [arg for arg in sys.argv[1:] if arg in CANDIDATES] or CANDIDATES
    for name in selected:
        score(name, CANDIDATES[name], list(cases()), "-v" in sys.argv)
