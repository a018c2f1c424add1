"""Outputs as the routes read them: they end after the terminal and only then."""

import pytest

from orchestrator import OrchOutput
from server.serving.outputs import Outputs
from stages.contract.errors import DeadlineError


async def stream(*outputs):
    for output in outputs:
        yield output


async def test_ends_after_the_terminal():
    source = stream(OrchOutput("r", 0, "a", False), OrchOutput("r", 0, "b", True))
    assert [output.data async for output in Outputs(source)] == ["a", "b"]


async def test_raises_the_error_of_the_request():
    with pytest.raises(DeadlineError):
        await anext(Outputs(stream(OrchOutput("r", 0, None, True, DeadlineError()))))


async def test_an_end_without_a_terminal_is_an_error():
    outputs = Outputs(stream(OrchOutput("r", 0, "a", False)))
    await anext(outputs)
    with pytest.raises(RuntimeError, match="without a terminal"):
        await anext(outputs)
