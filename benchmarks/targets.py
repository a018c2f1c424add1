"""The performance targets: each compares a figure of the results with its limit.

Figures are ratios to a rival measured in the same run. Memory targets are absolute; the ratio of
memory to piper's server is only recorded in the baseline. Figures that were not measured are left
out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.systems import BFLOAT16, LITSERVE, OURS, PIPER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Results = dict[str, Any]
FORMATS = ((OURS, ""), (BFLOAT16, ", bfloat16"))  # system, and the ending of its targets' names
GFLOP_PER_AUDIO_S = 5.3  # of the embedded voice: vocoder 3.9, flow 1.2, text encoder 0.2


@dataclass(frozen=True, slots=True)
class Target:
    """A target for one figure.

    `limit`: the maximum of the figure if `lower`, else the minimum; None means that there is no
    limit. `aim`: a further goal. `exact`: the figure is not a ratio, so it has no baseline.
    """

    name: str
    description: str
    limit: float | None
    lower: bool = True
    aim: float | None = None
    exact: bool = False

    def met(self, figure: float) -> bool | None:
        """Whether the figure is within the limit. None without a limit."""
        if self.limit is None:
            return None
        return figure <= self.limit if self.lower else figure >= self.limit


TARGETS = (
    Target("first audio alone / piper", "200 characters, median, float32", 1 / 10),
    Target("first audio alone / piper, bfloat16", "200 characters, median", 1 / 10),
    Target("first audio alone / streaming rival", "200 characters, median, float32", 1 / 3),
    Target("first audio of 8 / piper", "eight at once, median, float32", 1 / 15),
    Target("first audio of 8 / piper, bfloat16", "eight at once, median", 1 / 15),
    Target("slowest first audio of 8 / piper", "to piper's median, float32", 1 / 8),
    Target("slowest first audio of 8 / piper, bfloat16", "to piper's median", 1 / 8),
    Target("throughput at 8 / piper", "audio seconds per second, float32", 1.1, False, 1.4),
    Target("throughput at 32 / piper", "audio seconds per second, float32", 1.1, False, 1.4),
    Target("throughput at 8 / piper, bfloat16", "audio seconds per second", 1.7, False, 2.0),
    Target("throughput at 32 / piper, bfloat16", "audio seconds per second", 1.7, False, 2.0),
    Target("listeners / piper's throughput", "none runs dry (100 ms), float32", 1.1, False),
    Target("listeners / piper's throughput, bfloat16", "none runs dry (100 ms)", 1.7, False),
    Target("refused beyond capacity", "share, over 0", 1e-9, False, exact=True),
    Target("admitted and ran dry beyond capacity", "share (100 ms)", 0.0, exact=True),
    Target("memory at 8, GB", "whole tree, speech model only", 0.6, exact=True),
    Target("memory at 64, GB", "whole tree, speech model only", 1.0, exact=True),
    Target("memory at 8 / piper", "whole tree", None),
    Target("memory at 64 / piper", "whole tree", None),
    Target("CPU per audio second at 8 / piper", "whole tree, float32", None),
    Target("voice after the first clause / speech", "chat's delay less one token", 1.5),
    Target("voice after the first clause / speech, float32", "chat's delay less one token", 1.5),
    Target("tokens per second alone / llama.cpp", "the server's own format", 0.7, False),
    Target("tokens per second of 8 / llama.cpp alone", "the server's own format", 2.0, False),
    Target("CPU per audio event / sse-starlette", "server and orchestrator", 0.5),
)


def figures(results: Results) -> dict[str, float]:
    """All figures that the results contain, by the name of their target."""
    found: dict[str, float] = {}
    for part in (_first_audio, _throughput, _capacity, _chat, _control_path):
        found.update(part(results))
    return found


def _bursts(results: Results) -> Mapping[tuple[str, float], dict[str, Any]]:
    return {
        (row["system"], row["at"]): row
        for row in results.get("speech", ())
        if row["load"] == "burst" and row["audio_s_per_s"]
    }


def _first_audio(results: Results) -> Iterator[tuple[str, float]]:
    rows = _bursts(results)
    first = {key: row["first_audio_s"]["median"] for key, row in rows.items()}
    if (OURS, 1) in rows and (LITSERVE, 1) in rows:
        yield "first audio alone / streaming rival", first[OURS, 1] / first[LITSERVE, 1]
    for system, ending in FORMATS:
        if (system, 1) in rows and (PIPER, 1) in rows:
            yield f"first audio alone / piper{ending}", first[system, 1] / first[PIPER, 1]
        if (system, 8) in rows and (PIPER, 8) in rows:
            yield f"first audio of 8 / piper{ending}", first[system, 8] / first[PIPER, 8]
            slowest = rows[system, 8]["first_audio_slowest_s"] / first[PIPER, 8]
            yield f"slowest first audio of 8 / piper{ending}", slowest


def _throughput(results: Results) -> Iterator[tuple[str, float]]:
    rows = _bursts(results)
    if (OURS, 8) in rows and (PIPER, 8) in rows:
        cpu = _over(rows, (OURS, 8), "cpu_s_per_audio_s")
        yield "CPU per audio second at 8 / piper", cpu
    for num in (8, 64):
        if (OURS, num) in rows and (PIPER, num) in rows:
            yield f"memory at {num}, GB", rows[OURS, num]["peak_mb"] / 1024
            yield f"memory at {num} / piper", _over(rows, (OURS, num), "peak_mb")
    for num in (8, 32):
        for system, ending in FORMATS:
            if (system, num) in rows and (PIPER, num) in rows:
                ratio = _over(rows, (system, num), "audio_s_per_s")
                yield f"throughput at {num} / piper{ending}", ratio


def _over(
    rows: Mapping[tuple[str, float], dict[str, Any]], key: tuple[str, float], name: str
) -> float:
    ratio: float = rows[key][name] / rows[PIPER, key[1]][name]
    return ratio


def _capacity(results: Results) -> Iterator[tuple[str, float]]:
    for row in results.get("capacity", ()):
        for system, ending in FORMATS:
            if row["system"] == system:
                ratio = row["listeners"] / row["reference_audio_s_per_s"]
                yield f"listeners / piper's throughput{ending}", ratio
        if row["system"] == OURS and row["beyond"]:
            yield "refused beyond capacity", row["beyond"]["refused"]
            yield "admitted and ran dry beyond capacity", row["beyond"]["ran_dry_buffered"]


def _chat(results: Results) -> Iterator[tuple[str, float]]:
    chat = results.get("chat")
    if not chat:
        return
    rows = {row["dtype"]: row for row in chat["rows"]}
    own = rows[chat["own format"]]
    yield "voice after the first clause / speech", own["delay_over_speech"]
    yield "voice after the first clause / speech, float32", rows["float32"]["delay_over_speech"]
    alone = chat["llama.cpp"]["tokens_per_s"]
    if alone:
        yield "tokens per second alone / llama.cpp", own["tokens_per_s"] / alone
        together = own["together_tokens_per_s"]
        yield "tokens per second of 8 / llama.cpp alone", together / alone


def _control_path(results: Results) -> Iterator[tuple[str, float]]:
    path = results.get("control_path")
    if path:
        default = path["sse-starlette default"]["loop_us"]
        yield "CPU per audio event / sse-starlette", path["nano-omni"]["loop_us"] / default


def summary(results: Results) -> str:
    """A line for each target, then the share of the processor's peak throughput."""
    found = figures(results)
    lines = [f"{'':48} {'measured':>9} {'limit':>9}  met"]
    for target in TARGETS:
        figure = found.get(target.name)
        shown = "not measured" if figure is None else f"{figure:9.3f}"
        limit = (
            "" if target.limit is None else f"{'<=' if target.lower else '>='} {target.limit:.3g}"
        )
        met = None if figure is None else target.met(figure)
        answer = {None: "-", True: "yes", False: "NO"}[met]
        if figure is not None and target.aim is not None:
            answer += f" (aim {target.aim:g}: {'yes' if figure >= target.aim else 'no'})"
        lines.append(f"{target.name:48} {shown:>9} {limit:>9}  {answer}")
    missing = results.get("chat", {}).get("llama.cpp", {}).get("missing")
    if missing:
        lines.append(f"llama.cpp could not be measured: {missing}")
    return "\n".join([*lines, *_limits(results)])


def _limits(results: Results) -> Iterator[str]:
    rows = _bursts(results)
    for system, dtype in ((OURS, "float32"), (BFLOAT16, "bfloat16")):
        row = rows.get((system, 32)) or rows.get((system, 8))
        rates = [
            rate
            for name, rate in results["machine"]["matrix_gflops"].items()
            if name.startswith(dtype)
        ]
        if row and rates:
            limit = max(rates) / GFLOP_PER_AUDIO_S
            made = row["audio_s_per_s"]
            yield (
                f"{system}: {made:.1f} audio s/s, {100 * made / limit:.0f}% of what the matrix"
                f" units allow ({limit:.1f}: {max(rates):.0f} GFLOP/s in {dtype})"
            )
