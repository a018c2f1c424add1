"""Clients that ask and listen, in a process of their own so that they disturb the server little.

A plan is a list of clients. Each starts at its time and sends its bodies one after the other: N
clients at 0 are a closed loop, one client for each arrival an open loop, and clients who listen to
the end before they ask again are listeners. `load` runs a plan in a new process;
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
    """Starts `start_s` into the run. `listens`: plays each answer to its end before it goes on,
    and goes away when it is refused."""

    start_s: float
    bodies: list[dict[str, Any]]
    listens: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Where to, how the answers sound (see `hear`), and who asks."""

    port: int
    path: str
    kind: str
    rate_hz: int
    clients: list[Client] = field(default_factory=list)


def together(bodies: Sequence[dict[str, Any]], num_clients: int) -> list[Client]:
    """A closed loop: all start at once and share the bodies evenly."""
    return [Client(0.0, list(bodies[k::num_clients])) for k in range(num_clients)]


def poisson(bodies: Sequence[dict[str, Any]], rate_per_s: float, seed: int) -> list[Client]:
    """An open loop: each body comes at its own time, whatever became of those before."""
    rng = random.Random(seed)
    at_s, clients = 0.0, []
    for body in bodies:
        at_s += rng.expovariate(rate_per_s)
        clients.append(Client(at_s, [body]))
    return clients


def listeners(bodies: Sequence[dict[str, Any]], num_clients: int, audio_s: float) -> list[Client]:
    """Listeners who never stop: each plays its texts in turn. They begin spread over one text."""
    return [
        Client(k * audio_s / num_clients, list(bodies[k::num_clients]), listens=True)
        for k in range(num_clients)
    ]


async def run(plan: Plan, send: Send) -> list[Outcome]:
    """Let all clients ask; their outcomes in the order of the clients."""
    began_s = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(_one_client(plan, client, send, began_s)) for client in plan.clients
        ]
    traces = [trace for task in running for trace in task.result()]
    return [outcome_of(trace, began_s, plan.kind, plan.rate_hz) for trace in traces]


async def _one_client(plan: Plan, client: Client, send: Send, began_s: float) -> list[Trace]:
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
    """Run a plan in a process of its own. RuntimeError where that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=json.dumps(asdict(plan)).encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the clients ended with {done.returncode}")
    return [Outcome(**each) for each in json.loads(done.stdout)]


def main() -> None:
    """A plan on stdin, outcomes on stdout."""
    given = json.load(sys.stdin)
    clients = [Client(**client) for client in given.pop("clients")]
    plan = Plan(**given, clients=clients)
    gc.disable()
    outcomes = asyncio.run(run(plan, lambda body: post(plan.port, plan.path, body)))
    json.dump([asdict(outcome) for outcome in outcomes], sys.stdout)


if __name__ == "__main__":
    main()
