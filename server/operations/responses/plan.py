"""Checks a request for a response and turns it into what the thinker runs.

A request can continue from a stored response. The earlier turns, without their instructions, then
come before the input.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from openapi.problems import Problem, unsupported
from openapi.responses.response import ResponseObject
from server.errors import RefusedError
from server.operations.shared.ids import new_id
from server.operations.shared.plan import Plan, deadline_of
from server.operations.shared.text_options import (
    chat_pipeline_of,
    refuse_tools,
    reply_limit,
    sampling_of,
    schema_of,
    text_model_of,
)
from stages.contract.messages import ChatPrompt, Message, Request, ThinkerParams

if TYPE_CHECKING:
    from openapi.responses.request import ResponseRequest, TextFormat
    from server.operations.responses.stored import StoredResponse
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.service import Service
    from stages.contract.messages import Sampling
    from stages.contract.model import ChatPrompts


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsePlan(Plan):
    """A checked request. `initial` is the response before it has any output.

    `turns` is the conversation so far, without instructions.
    """

    initial: ResponseObject
    turns: tuple[Message, ...]


async def plan_response(
    service: Service, body: ResponseRequest, stored: ExpiringStore[StoredResponse]
) -> ResponsePlan:
    """Check a request and plan it. Raises RefusedError, UnavailableError."""
    served, prompts = text_model_of(service, body.model, "v1/responses")
    settings = service.settings
    _check_options(body)
    turns = (*_earlier_turns(body.previous_response_id, stored), *_input_turns(body))
    system = (Message("system", body.instructions),) if body.instructions else ()
    prompt = ChatPrompt((*system, *turns))
    tokens = await anyio.to_thread.run_sync(prompts.tokenize, prompt)
    limit = reply_limit(
        body.max_output_tokens, len(tokens), prompts, "input", settings.max_reply_tokens
    )
    sampling = sampling_of(body)
    text_format = body.text.format if body.text is not None else None
    schema = await _schema(text_format, prompts)
    thinker = ThinkerParams(prompt, sampling, limit, (), body.num_top_logprobs, schema)
    return ResponsePlan(
        served=served,
        pipeline=chat_pipeline_of(served),
        requests=(Request((thinker,)),),
        stream=bool(body.stream),
        deadline_s=deadline_of(body.timeout_s, settings),
        initial=_initial(body, served.model_id, sampling, text_format),
        turns=turns,
    )


def _check_options(body: ResponseRequest) -> None:
    refuse_tools(body.tools, body.tool_choice, "tools", "tool_choice")
    unavailable = {
        "conversation": body.conversation,
        "prompt": body.prompt,
        "background": body.background,
    }
    for name, requested in unavailable.items():
        if requested:
            message = f"Unsupported parameter: '{name}' is not available on this server."
            raise RefusedError(unsupported(name, message))


def _earlier_turns(
    response_id: str | None, stored: ExpiringStore[StoredResponse]
) -> tuple[Message, ...]:
    if response_id is None:
        return ()
    if (found := stored.get(response_id)) is None:
        message = (
            "Previous response not found: no response with this 'previous_response_id' is stored, "
            "or it has expired."
        )
        raise RefusedError(Problem(message, "previous_response_id", "previous_response_not_found"))
    return found.turns


def _input_turns(body: ResponseRequest) -> tuple[Message, ...]:
    return tuple(
        Message("system" if message.role == "developer" else message.role, message.text)
        for message in body.input
    )


async def _schema(text_format: TextFormat | None, prompts: ChatPrompts) -> str | None:
    if text_format is None:
        return None
    return await schema_of(text_format.type, text_format.schema_, "text.format.schema", prompts)


def _initial(
    body: ResponseRequest, model: str, sampling: Sampling, text_format: TextFormat | None
) -> ResponseObject:
    return ResponseObject(
        id=new_id("resp_", 24),
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
        text={"format": _format_in_reply(text_format)},
        metadata=body.metadata or {},
        usage=None,
        tool_choice="none" if body.tool_choice == "none" else "auto",
    )


def _format_in_reply(text_format: TextFormat | None) -> dict[str, Any]:
    if text_format is None or text_format.type == "text":
        return {"type": "text"}
    if text_format.type == "json_object":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "name": text_format.name or "schema",
        "description": None,
        "schema": text_format.schema_,
        "strict": True,
    }
