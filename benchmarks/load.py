"""The clients of the benchmark. They run in a process of their own, to disturb the server little.

A plan is a list of clients. Each starts at its time and sends its bodies one after the other. N
clients that start at 0 are a closed loop. One client for each arrival is an open loop. Listeners
play each answer to its end before they send the next request. `load` runs a plan in a new process;
`python -m benchmarks.load` is that process.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.http_client import post
from benchmarks.outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.http_client import Trace

    Send = Callable[[dict[str, Any]], Awaitable[Trace]]


@dataclass(frozen=True, slots=True)
class Client:
    """Sends its bodies one after the other, from `start_s` seconds into the run.

    `listens`: it plays each answer to its end before the next request, and stops when one fails.
    """

    start_s: float
    bodies: list[dict[str, Any]]
    listens: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Where to send, the kind of the responses (see `decode_body`), and the clients."""

    port: int
    path: str
    kind: str
    rate_hz: int
    clients: list[Client] = field(default_factory=list)


def together(bodies: Sequence[dict[str, Any]], num_clients: int) -> list[Client]:
    """A closed loop: all clients start at once and share the bodies evenly."""
    return [Client(0.0, list(bodies[k::num_clients])) for k in range(num_clients)]


def poisson(bodies: Sequence[dict[str, Any]], rate_per_s: float, seed: int) -> list[Client]:
    """An open loop: each body is sent at its own time, independent of earlier responses."""
    rng = random.Random(seed)
    at_s, clients = 0.0, []
    for body in bodies:
        at_s += rng.expovariate(rate_per_s)
        clients.append(Client(at_s, [body]))
    return clients


def listeners(bodies: Sequence[dict[str, Any]], num_clients: int, audio_s: float) -> list[Client]:
    """Listeners that play their texts without a pause. Their starts are spread over one text."""
    return [
        Client(k * audio_s / num_clients, list(bodies[k::num_clients]), listens=True)
        for k in range(num_clients)
    ]


async def run(plan: Plan, send: Send) -> list[Outcome]:
    """Run all clients. Returns the outcomes in the order of the clients."""
    began_s = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_run_client(plan, client, send, began_s)) for client in plan.clients
        ]
    traces = [trace for task in running for trace in task.result()]
    return [outcome_of(trace, began_s, plan.kind, plan.rate_hz) for trace in traces]


async def _run_client(plan: Plan, client: Client, send: Send, began_s: float) -> list[Trace]:
    clock = asyncio.get_running_loop().time
    await asyncio.sleep(began_s + client.start_s - clock())
    traces = []
    for body in client.bodies:
        trace = await send(body)
        traces.append(trace)
        if client.listens:
            outcome = outcome_of(trace, began_s, plan.kind, plan.rate_hz)
            if not outcome.good:
                break
            await asyncio.sleep(trace.began_s + outcome.listened_s - clock())
    return traces


def load(plan: Plan) -> list[Outcome]:
    """Run a plan in a new process. Raises RuntimeError if the process fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=json.dumps(asdict(plan)).encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the process of the clients exited with {done.returncode}")
    return [Outcome(**each) for each in json.loads(done.stdout)]


def main() -> None:
    """Read a plan from stdin, run it, and write its outcomes to stdout."""
    fields = json.load(sys.stdin)
    clients = [Client(**client) for client in fields.pop("clients")]
    plan = Plan(**fields, clients=clients)
    gc.disable()
    outcomes = asyncio.run(run(plan, lambda body: post(plan.port, plan.path, body)))
    json.dump([asdict(outcome) for outcome in outcomes], sys.stdout)


if __name__ == "__main__":
    main()
