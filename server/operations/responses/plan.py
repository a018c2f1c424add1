"""A request for a response, checked, as what the thinker runs.

A stored response can be gone on from: its turns, without its instructions, come before the input.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from openapi.problems import Problem, unsupported
from openapi.responses.response import ResponseObject
from server.errors import RefusedError
from server.operations.shared.seed import seed_of
from server.operations.shared.text_options import (
    DEFAULT_TEMPERATURE,
    refuse_tools,
    reply_limit,
    schema_of,
    writer_of,
)
from stages.contract.messages import Request, Sampling, ThinkerParams
from stages.contract.pipeline import Message

if TYPE_CHECKING:
    from openapi.responses.request import ResponseRequest, TextFormat
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.served import ServedModel
    from server.serving.service import Service
    from stages.contract.pipeline import ChatPrompts


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that can be asked for again, and the turns that led to it, its own the last."""

    response: ResponseObject
    turns: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ResponsePlan:
    """A request that nothing is wrong with. `begun` is the response before anything of it is."""

    served: ServedModel
    request: Request
    begun: ResponseObject
    turns: tuple[Message, ...]
    stream: bool
    deadline_s: float


async def plan_response(
    service: Service, body: ResponseRequest, stored: ExpiringStore[StoredResponse]
) -> ResponsePlan:
    """Check everything that can be checked. Raises RefusedError, UnavailableError."""
    served, prompts = writer_of(service, body.model, "v1/responses")
    settings = service.settings
    _check_options(body)
    turns = (*_earlier(body.previous_response_id, stored), *_turns(body))
    system = (Message("system", body.instructions),) if body.instructions else ()
    prompt = await anyio.to_thread.run_sync(prompts.tokenize, (*system, *turns))
    limit = reply_limit(
        body.max_output_tokens, len(prompt), prompts, "input", settings.max_reply_tokens
    )
    sampling = Sampling(
        seed=seed_of(body.seed),
        temperature=DEFAULT_TEMPERATURE if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=body.top_k or 0,
    )
    shape = body.text.format if body.text is not None else None
    schema = await _schema(shape, prompts)
    return ResponsePlan(
        served,
        Request((ThinkerParams(prompt, sampling, limit, (), body.num_top, schema),)),
        _begun(body, served.pipeline.model_id, sampling, shape),
        turns,
        bool(body.stream),
        min(body.timeout_s or settings.deadline_s, settings.deadline_s),
    )


def _check_options(body: ResponseRequest) -> None:
    refuse_tools(body.tools, body.tool_choice, "tools", "tool_choice")
    unavailable = {
        "conversation": body.conversation,
        "prompt": body.prompt,
        "background": body.background,
    }
    for name, asked in unavailable.items():
        if asked:
            message = f"Unsupported parameter: '{name}' is not available."
            raise RefusedError(unsupported(name, message))


def _earlier(response_id: str | None, stored: ExpiringStore[StoredResponse]) -> tuple[Message, ...]:
    if response_id is None:
        return ()
    if (found := stored.get(response_id)) is None:
        message = "Previous response not found: there is none with this id, or it has expired."
        raise RefusedError(Problem(message, "previous_response_id", "previous_response_not_found"))
    return found.turns


def _turns(body: ResponseRequest) -> tuple[Message, ...]:
    return tuple(
        Message("system" if message.role == "developer" else message.role, message.text)
        for message in body.input
    )


async def _schema(shape: TextFormat | None, prompts: ChatPrompts) -> str | None:
    if shape is None:
        return None
    return await schema_of(shape.type, shape.schema_, "text.format.schema", prompts)


def _begun(
    body: ResponseRequest, model: str, sampling: Sampling, shape: TextFormat | None
) -> ResponseObject:
    return ResponseObject(
        id=f"resp_{secrets.token_hex(24)}",
        object="response",
        created_at=int(time.time()),
        completed_at=None,
        status="in_progress",
        error=None,
        incomplete_details=None,
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        model=model,
        output=[],
        previous_response_id=body.previous_response_id,
        store=body.store is not False,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_logprobs=body.top_logprobs or 0,
        text={"format": _shown(shape)},
        metadata=body.metadata or {},
        usage=None,
        tool_choice="none" if body.tool_choice == "none" else "auto",
    )


def _shown(shape: TextFormat | None) -> dict[str, Any]:
    if shape is None or shape.type == "text":
        return {"type": "text"}
    if shape.type == "json_object":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "name": shape.name or "schema",
        "description": None,
        "schema": shape.schema_,
        "strict": True,
    }
