"""Measures chats: tokens per second beside llama.cpp on the same weights, and time to first audio.

llama.cpp runs without a server, through llama-cpp-python built for this processor. If it cannot be
installed, its figures are None and the results contain the reason.
"""

from __future__ import annotations

import json
import subprocess
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.clause import first_clause
from benchmarks.environments import chat_model, environment, versions
from benchmarks.load import Client, Plan, load, together
from benchmarks.measured import Batch, summarise
from benchmarks.processes import Watch, free_port, python_of, running
from benchmarks.spread import spread
from benchmarks.systems import RIVALS, has_bfloat16

if TYPE_CHECKING:
    from benchmarks.effort import Effort
    from benchmarks.outcome import Outcome

PROMPTS = (
    "Tell me a long story about the sea.",
    "Describe a small town in the mountains, as fully as you can.",
    "Explain how bread is baked, step by step.",
    "Tell me about the life of a lighthouse keeper.",
    "What should somebody know who visits a big city for the first time?",
    "Tell me the story of a dog that found its way home.",
    "Explain how a bicycle works to a child.",
    "Describe the four seasons in a garden.",
)
NUM_TOGETHER = 8
CLAUSE_REPEATS = 5


def body(number: int, num_tokens: int, *, voice: bool) -> dict[str, Any]:
    """The body of a chat request."""
    spoken = {"modalities": ["text", "audio"], "audio": {"voice": "joe", "format": "pcm16"}}
    return {
        "model": "smollm2-joe",
        "messages": [{"role": "user", "content": PROMPTS[number % len(PROMPTS)]}],
        "max_tokens": num_tokens,
        "seed": number,
        "stream": True,
        "stream_options": {"include_usage": True},
        **(spoken if voice else {}),
    }


def measure_chat(effort: Effort) -> dict[str, Any]:
    """Our server with each dtype. llama.cpp runs before each of them and at the end."""
    dtypes = ["float32", *(["bfloat16"] if has_bfloat16() else [])]
    references, rows = [_llama(effort)], []
    for dtype in dtypes:
        rows.append(_ours(dtype, effort))
        references.append(_llama(effort))
    default = dtypes[-1]  # the dtype of the server without a setting
    return {"llama.cpp": _median_of(references), "rows": rows, "own format": default}


def _median_of(references: list[dict[str, Any]]) -> dict[str, Any]:
    rates = [each["tokens_per_s"] for each in references]
    return {**references[0], "tokens_per_s": median(rates) if all(rates) else None}


def _llama(effort: Effort) -> dict[str, Any]:
    try:
        folder = environment("llama")
    except subprocess.CalledProcessError as error:
        return {"tokens_per_s": None, "missing": f"llama-cpp-python: {error}"}
    arguments = [str(chat_model()), str(effort.chat_tokens), str(effort.chats), "1", "2"]
    done = subprocess.run(
        [python_of(folder), str(RIVALS / "llama_alone.py"), *arguments],
        input=json.dumps(PROMPTS).encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        return {"tokens_per_s": None, "missing": done.stderr.decode()[-500:]}
    by_threads = {
        threads: median(rates["decode"]) for threads, rates in json.loads(done.stdout).items()
    }
    print(f"llama.cpp alone: {by_threads}")
    return {
        "tokens_per_s": max(by_threads.values()),
        "by_threads": by_threads,
        "weights": chat_model().name,
        "versions": versions(folder, ("llama-cpp-python",)),
    }


def _ours(dtype: str, effort: Effort) -> dict[str, Any]:
    port = free_port()
    serve = ("-m", "server.cli.main", "serve", "--port", str(port), "--model", "embedded")
    command = (python_of(None), *serve, "--log-level", "warning")
    with running(command, port, "/health/ready", {"NANO_OMNI_DTYPE": dtype}) as pid:
        chats = _Chats(pid, port, effort)
        chats.warm_up()
        row = {"dtype": dtype, **chats.written(), **chats.spoken()}
    print(f"chat, {dtype}: {row['tokens_per_s']:.1f} tokens/s, {row['together_tokens_per_s']:.1f}")
    return row


class _Chats:
    """Sends chats to one server and measures them."""

    def __init__(self, pid: int, port: int, effort: Effort) -> None:
        self._pid, self._port, self._effort = pid, port, effort

    def warm_up(self) -> None:
        """Send one chat with voice and one without."""
        self._ask([Client(0.0, [body(0, 40, voice=True), body(1, 40, voice=False)])])

    def written(self) -> dict[str, Any]:
        """Measure text-only chats: one at a time, then eight at once."""
        count, tokens = self._effort.chats, self._effort.chat_tokens
        alone = self._ask(together([body(k, tokens, voice=False) for k in range(count)], 1))
        crowd = self._ask(
            together([body(k, tokens, voice=False) for k in range(NUM_TOGETHER)], NUM_TOGETHER)
        )
        return {
            "tokens_per_s": median(_decode_rate(outcome) for outcome in alone.outcomes),
            "first_token_s": spread([outcome.texts[0][0] for outcome in alone.outcomes]),
            "together_tokens_per_s": _tokens(crowd) / crowd.wall_s,
            "together_first_token_s": spread([outcome.texts[0][0] for outcome in crowd.outcomes]),
        }

    def spoken(self) -> dict[str, Any]:
        """Measure chats with voice: one at a time, then eight at once.

        The first clause of each lone chat is also sent to the speech model, for comparison.
        """
        count, tokens = self._effort.chats, self._effort.chat_tokens
        alone = self._ask(together([body(k, tokens, voice=True) for k in range(count)], 1))
        crowd = self._ask(
            together([body(k, tokens, voice=True) for k in range(NUM_TOGETHER)], NUM_TOGETHER)
        )
        delays = [delay for outcome in alone.outcomes if (delay := self._delay(outcome))]
        return {
            "voice": summarise([alone]),
            "voice_together": summarise([crowd]),
            "clauses": delays,
            "delay_over_speech": median(
                (each["delay_s"] - each["token_s"]) / each["speech_first_audio_s"]
                for each in delays
            ),
        }

    def _delay(self, outcome: Outcome) -> dict[str, Any] | None:
        clause = first_clause(outcome.texts)
        if clause is None or outcome.first_audio_s is None:
            return None
        speech = {"model": "tts-1", "voice": "joe", "response_format": "pcm", "input": clause.text}
        clients = [Client(0.0, [speech] * CLAUSE_REPEATS)]
        spoken = load(Plan(self._port, "/v1/audio/speech", "pcm", 24_000, clients))
        return {
            "clause": clause.text,
            "delay_s": outcome.first_audio_s - clause.last_token_s,
            "token_s": 1 / _decode_rate(outcome),
            "speech_first_audio_s": median(each.first_audio_s or 0.0 for each in spoken),
        }

    def _ask(self, clients: list[Client]) -> Batch:
        plan = Plan(self._port, "/v1/chat/completions", "chat", 24_000, clients)
        with Watch(self._pid) as watch:
            outcomes = load(plan)
        bad = [outcome.status for outcome in outcomes if not outcome.good]
        if bad:
            raise RuntimeError(f"chats failed: {bad}")
        return Batch(outcomes, watch.cpu_s, watch.peak_mb)


def _decode_rate(outcome: Outcome) -> float:
    """Tokens per second after the first token."""
    return (outcome.num_tokens - 1) / (outcome.texts[-1][0] - outcome.texts[0][0])


def _tokens(batch: Batch) -> int:
    return sum(outcome.num_tokens for outcome in batch.outcomes)
