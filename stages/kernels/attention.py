"""Grouped-query attention of many sequences over their slots, in as few calls as possible.

Segments of equal length whose slots are neighbours form a run; a run is written and attended in one
call per layer, on views of the cache. Keys and values are never repeated for the query heads that
share them: these heads become rows of one query matrix (Ainslie et al. 2023, "GQA").
A step in which every row of a slab takes one token can be made of positions that only the device
knows, and then has the same shapes each time (`rows_batch`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.device import on_device
from stages.kernels.kv_cache import Slot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kernels.kv_cache import Slab


@dataclass(frozen=True, slots=True)
class Segment:
    """The next `tokens` of one sequence, of which `start` tokens are in its slot already.

    The slot has room for `start + len(tokens)`.
    """

    slot: Slot
    start: int
    tokens: tuple[int, ...]
    want_logits: bool = True

    @property
    def span(self) -> Span:
        """Where the tokens go."""
        return Span(self.slot, self.start, len(self.tokens), self.want_logits)


@dataclass(frozen=True, slots=True)
class Span:
    """The places of the next `length` tokens of one sequence; see `Segment`."""

    slot: Slot
    start: int
    length: int
    want_last: bool = True


class Run:
    """Equally long spans of neighbouring slots, from `slot` on, whose tokens are rows `first` and
    after of the batch. `positions` is [spans, tokens]; nothing from `end` on is read. Not `masked`,
    every query sees all before `end`.
    """

    def __init__(
        self, slot: Slot, positions: Tensor, end: int, first: int, num_heads: int, *, masked: bool
    ) -> None:
        slab = slot.slab
        count, length = positions.shape
        self.positions = positions
        self._size = count, length
        self._num_kv_heads = slab.shape.num_kv_heads
        self._num_groups = num_heads // self._num_kv_heads
        self._rows = slice(first, first + count * length)
        self._flat = slab.flat
        rows = slice(slot.row, slot.row + count)
        self._keys_values = slab.storage[:, rows, :, :end].unbind(0)
        self._mask = self._visible(end) if masked else None
        self._by_products = count > 1 and length == 1 and positions.device.type == "cpu"
        if self._by_products:
            self._use_products()
        self._places: Sequence[Tensor] = ()
        self._index: Tensor | None = None
        if masked or length > 1:
            self._index = _write_index(slot, positions)
        else:  # all at the same place in their slots: one copy, and nothing to look up
            place = slab.storage[:, rows, :, end - 1]
            self._places = place.view(-1, 2, *place.shape[1:]).transpose(1, 2).unbind(0)

    def _visible(self, end: int) -> Tensor:
        """[segments, 1, tokens * groups, end]: 0 where a query may look, -inf elsewhere."""
        count, length = self._size
        hidden = torch.arange(end, device=self.positions.device) > self.positions[..., None]
        mask = torch.zeros(hidden.shape, dtype=self._flat[0].dtype, device=hidden.device)
        mask.masked_fill_(hidden, float("-inf"))
        groups = mask[:, None, :, None].expand(count, 1, length, self._num_groups, end)
        return groups.reshape(count, 1, length * self._num_groups, end)

    def _use_products(self) -> None:
        """Lay out for `_multiplied`: keys and values [segments * kv_heads, end, dim]."""
        self._keys_values = tuple(each.flatten(0, 1) for each in self._keys_values)
        if self._mask is None:
            self._mask = self._keys_values[0].new_zeros(1, 1, 1)
        else:
            self._mask = self._mask[:, 0, :1].repeat_interleave(self._num_kv_heads, 0)

    def _multiplied(self, layer: int, queries: Tensor) -> Tensor:
        """`attend` as two matrix products. For some rows of one query each, on a CPU: of a step of
        8 chats on two threads, where torch's own attention takes 18.9 ms, all is done in 17.1."""
        assert self._mask is not None
        dim = queries.shape[-1]
        queries = queries.reshape(-1, self._num_groups, dim)
        keys, values = self._keys_values[2 * layer : 2 * layer + 2]
        scores = torch.baddbmm(self._mask, queries, keys.transpose(1, 2), alpha=dim**-0.5)
        return torch.bmm(scores.softmax(-1), values).view(self._size[0], -1)

    def write(self, layer: int, keys_values: Tensor) -> None:
        """Store this run's part of [tokens, 2 * kv_heads, dim]."""
        rows = self._own(keys_values)
        if self._index is None:
            place = self._places[layer]
            place.copy_(rows.view(place.shape))
        else:
            self._flat[layer].index_copy_(0, self._index, rows.reshape(-1, rows.shape[-1]))

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """This run's part of [tokens, heads, dim] → [its tokens, heads * dim]."""
        if self._by_products:
            return self._multiplied(layer, self._own(queries))
        count, length = self._size
        kv_heads, groups, dim = self._num_kv_heads, self._num_groups, queries.shape[-1]
        queries = self._own(queries)
        if length == 1:
            queries = queries.view(count, kv_heads, groups, dim)
        else:
            queries = queries.view(count, length, kv_heads, groups, dim)
            queries = queries.transpose(1, 2).flatten(2, 3)
        keys, values = self._keys_values[2 * layer : 2 * layer + 2]
        seen = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=self._mask)
        if length == 1:  # each view less counts: a step of one token makes 30 of them
            return seen.reshape(count, -1)
        seen = seen.reshape(count, kv_heads, length, groups, dim).transpose(1, 2)
        return seen.reshape(count * length, -1)

    def _own(self, rows: Tensor) -> Tensor:
        """Of all rows of the batch those of this run: often all, and a view takes its time."""
        count, length = self._size
        return rows if len(rows) == count * length else rows[self._rows]


def _write_index(slot: Slot, positions: Tensor) -> Tensor:
    """Where [segments, tokens, (keys, values), kv_heads] lie in a layer's flat view, flattened."""
    slab, heads = slot.slab, slot.slab.shape.num_kv_heads
    device = positions.device
    kind = torch.arange(2, device=device)[:, None] * slab.num_rows
    row = slot.row + torch.arange(len(positions), device=device)[:, None, None, None]
    line = (kind + row) * heads + torch.arange(heads, device=device)
    return (line * slab.capacity + positions[..., None, None]).flatten()


class Batch:
    """One forward pass: where its tokens are read and written, run by run."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        positions = [run.positions.flatten() for run in runs]
        self.positions = positions[0] if len(runs) == 1 else torch.cat(positions)

    def attend(self, layer: int, queries: Tensor, keys_values: Tensor) -> Tensor:
        """Write, then read: [tokens, heads, dim], [tokens, 2 * kv_heads, dim] → [tokens, ...]."""
        for run in self._runs:
            run.write(layer, keys_values)
        if len(self._runs) == 1:
            return self._runs[0].attend(layer, queries)
        return torch.cat([run.attend(layer, queries) for run in self._runs])


def rows_batch(slab: Slab, positions: Tensor, end: int, num_heads: int) -> Batch:
    """One token for each of a slab's first rows, at `positions` [rows], all less than `end`.

    Every row is written at its position, also those of which nothing is wanted.
    """
    run = Run(Slot(slab, 0), positions[:, None], end, 0, num_heads, masked=True)
    return Batch([run])


class SpanBatch(Batch):
    """The pass of some spans. The batch has their tokens in another `order` than they came in.

    `last` are the rows of the last tokens of those that want them; None where these are all rows.
    """

    def __init__(self, spans: Sequence[Span], num_heads: int) -> None:
        self.order = sorted(range(len(spans)), key=lambda i: _place(spans[i]))
        runs: list[Run] = []
        first = 0
        for group in _neighbours([spans[i] for i in self.order]):
            runs.append(_run(group, first, num_heads))
            first += sum(span.length for span in group)
        super().__init__(runs)
        last = _last_rows(spans, self.order)
        every = last == list(range(len(self.positions)))
        self.last = None if every else on_device(last, self.positions.device)


def _run(spans: Sequence[Span], first: int, num_heads: int) -> Run:
    head = spans[0]
    device = head.slot.slab.shape.device
    starts = [span.start for span in spans]
    positions = on_device(starts, device)[:, None]
    if head.length > 1:
        positions = positions + torch.arange(head.length, device=device)
    masked = len(set(starts)) > 1 or head.length > 1
    end = max(starts) + head.length
    return Run(head.slot, positions, end, first, num_heads, masked=masked)


def _place(span: Span) -> tuple[int, int, int]:
    return span.length, id(span.slot.slab), span.slot.row


def _neighbours(ordered: Sequence[Span]) -> list[list[Span]]:
    groups = [[ordered[0]]]
    for before, span in pairwise(ordered):
        length, slab, row = _place(before)
        if _place(span) == (length, slab, row + 1):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _last_rows(spans: Sequence[Span], order: Sequence[int]) -> list[int]:
    """The batch row of the last token of each span that wants it, in the caller's order."""
    ends: dict[int, int] = {}
    total = 0
    for i in order:
        total += spans[i].length
        ends[i] = total - 1
    return [ends[i] for i, span in enumerate(spans) if span.want_last]
