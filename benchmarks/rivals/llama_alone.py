"""llama.cpp without a server: tokens per second of one chat, with the same weights.

Run it in its own environment: `python llama_alone.py MODEL.gguf TOKENS ROUNDS THREADS...`. It reads
prompts as JSON from stdin, and writes JSON to stdout: for each number of threads the rates of each
round, after the first token (`decode`) and over the whole answer (`whole`).
"""

import json
import sys
import time

import llama_cpp

PROMPTS = json.loads(sys.stdin.read())


def has_text(chunk):
    """Whether the chunk has a token, rather than the role or the end."""
    return bool(chunk["choices"][0]["delta"].get("content"))


def measure(path, num_tokens, rounds, threads):
    """Tokens per second: after the first token, and over the whole answer."""
    model = llama_cpp.Llama(
        path, n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False
    )
    found = {"decode": [], "whole": []}
    for number in range(rounds + 1):
        messages = [{"role": "user", "content": PROMPTS[number % len(PROMPTS)]}]
        began = time.perf_counter()
        chunks = model.create_chat_completion(
            messages, max_tokens=num_tokens, temperature=0.2, seed=number, stream=True
        )
        times = [time.perf_counter() for chunk in chunks if has_text(chunk)]
        if number and len(times) > 1:  # the first round is a warm-up
            found["decode"].append((len(times) - 1) / (times[-1] - times[0]))
            found["whole"].append(len(times) / (times[-1] - began))
    return found


if __name__ == "__main__":
    path, num_tokens, rounds, *threads = sys.argv[1:]
    json.dump(
        {count: measure(path, int(num_tokens), int(rounds), int(count)) for count in threads},
        sys.stdout,
    )
