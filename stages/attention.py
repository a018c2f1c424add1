"""Grouped-query attention of many sequences over their slots, in as few calls as possible.

Segments of equal length whose slots are neighbours form a run; a run is written and attended in one
call per layer, on views of the cache. Keys and values are never repeated for the query heads that
share them: these heads become rows of one query matrix (Ainslie et al. 2023, "GQA").
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kv_cache import Slot


@dataclass(frozen=True, slots=True)
class Segment:
    """The next `tokens` of one sequence, of which `start` tokens are in its slot already.

    The slot has room for `start + len(tokens)`.
    """

    slot: Slot
    start: int
    tokens: tuple[int, ...]
    want_logits: bool = True


class Run:
    """Neighbouring segments; their tokens are rows `first .. first + num_tokens` of the batch."""

    def __init__(self, segments: Sequence[Segment], first: int, num_heads: int) -> None:
        head = segments[0]
        slab = head.slot.slab
        self._size = len(segments), len(head.tokens)
        self._num_kv_heads = slab.shape.num_kv_heads
        self._num_groups = num_heads // self._num_kv_heads
        self._rows = slice(first, first + len(segments) * len(head.tokens))
        self._flat = slab.flat
        device = slab.shape.device
        starts = [segment.start for segment in segments]
        end = max(starts) + len(head.tokens)
        rows = slice(head.slot.row, head.slot.row + len(segments))
        self._keys_values = slab.storage[:, rows, :, :end].unbind(0)
        steps = torch.arange(len(head.tokens), device=device)
        self.positions = torch.tensor(starts, device=device)[:, None] + steps
        self._mask = self._visible(end) if len(set(starts)) > 1 or len(head.tokens) > 1 else None
        self._index = _write_index(head.slot, self.positions)

    def _visible(self, end: int) -> Tensor:
        """[segments, 1, tokens * groups, end]: 0 where a query may look, -inf elsewhere."""
        count, length = self._size
        hidden = torch.arange(end, device=self.positions.device) > self.positions[..., None]
        mask = torch.zeros(hidden.shape, dtype=self._flat[0].dtype, device=hidden.device)
        mask.masked_fill_(hidden, float("-inf"))
        groups = mask[:, None, :, None].expand(count, 1, length, self._num_groups, end)
        return groups.reshape(count, 1, length * self._num_groups, end)

    def write(self, layer: int, keys_values: Tensor) -> None:
        """Store this run's part of [tokens, 2 * kv_heads, dim]."""
        rows = keys_values[self._rows]
        self._flat[layer].index_copy_(0, self._index, rows.reshape(-1, rows.shape[-1]))

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """This run's part of [tokens, heads, dim] → [its tokens, heads * dim]."""
        count, length = self._size
        kv_heads, groups, dim = self._num_kv_heads, self._num_groups, queries.shape[-1]
        queries = queries[self._rows].view(count, length, kv_heads, groups, dim)
        queries = queries[:, 0] if length == 1 else queries.transpose(1, 2).flatten(2, 3)
        keys, values = self._keys_values[2 * layer : 2 * layer + 2]
        seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=self._mask)
        if length == 1:  # each view less counts: a step of one token makes 30 of them
            return seen.reshape(count, -1)
        seen = seen.reshape(count, kv_heads, length, groups, dim).transpose(1, 2)
        return seen.reshape(count * length, -1)


def _write_index(slot: Slot, positions: Tensor) -> Tensor:
    """Where [segments, tokens, (keys, values), kv_heads] lie in a layer's flat view, flattened."""
    slab, heads = slot.slab, slot.slab.shape.num_kv_heads
    device = positions.device
    kind = torch.arange(2, device=device)[:, None] * slab.num_rows
    row = slot.row + torch.arange(len(positions), device=device)[:, None, None, None]
    line = (kind + row) * heads + torch.arange(heads, device=device)
    return (line * slab.capacity + positions[..., None, None]).flatten()


class Batch:
    """One forward pass: its tokens in the order of the runs, and where the results go."""

    def __init__(self, segments: Sequence[Segment], num_heads: int) -> None:
        order = sorted(range(len(segments)), key=lambda i: _place(segments[i]))
        ordered = [segments[i] for i in order]
        self.runs: list[Run] = []
        first = 0
        for group in _neighbours(ordered):
            self.runs.append(Run(group, first, num_heads))
            first += sum(len(segment.tokens) for segment in group)
        device = ordered[0].slot.slab.shape.device
        tokens = [token for segment in ordered for token in segment.tokens]
        self.tokens = torch.tensor(tokens, device=device)
        self.positions = torch.cat([run.positions.flatten() for run in self.runs])
        self.last = torch.tensor(_last_rows(segments, order), dtype=torch.long, device=device)

    def attend(self, layer: int, queries: Tensor, keys_values: Tensor) -> Tensor:
        """Write, then read: [tokens, heads, dim], [tokens, 2 * kv_heads, dim] → [tokens, ...]."""
        for run in self.runs:
            run.write(layer, keys_values)
        parts = [run.attend(layer, queries) for run in self.runs]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def _place(segment: Segment) -> tuple[int, int, int]:
    return len(segment.tokens), id(segment.slot.slab), segment.slot.row


def _neighbours(ordered: Sequence[Segment]) -> list[list[Segment]]:
    groups = [[ordered[0]]]
    for before, segment in pairwise(ordered):
        length, slab, row = _place(before)
        if _place(segment) == (length, slab, row + 1):
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


def _last_rows(segments: Sequence[Segment], order: Sequence[int]) -> list[int]:
    """The batch row of the last token of each segment that wants logits, in the caller's order."""
    ends: dict[int, int] = {}
    total = 0
    for i in order:
        total += len(segments[i].tokens)
        ends[i] = total - 1
    return [ends[i] for i, segment in enumerate(segments) if segment.want_logits]
