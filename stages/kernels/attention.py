"""Grouped-query attention of many sequences over their cache slots, in as few calls as possible.

Spans of equal length in neighbouring slots form a run. A run is written and attended in one call
per layer, on views of the cache. Query heads that share keys and values (Ainslie et al. 2023,
"GQA") become rows of one query matrix, so keys and values are never repeated.
`rows_batch` makes a step of one token for each row of a slab. Its positions may exist only on the
device, and its shapes are the same each time, as CUDA graphs need it.
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
    """The next `tokens` of one sequence, whose first `start` tokens are in the slot already.

    The slot has capacity for `start + len(tokens)` tokens.
    """

    slot: Slot
    start: int
    tokens: tuple[int, ...]
    want_logits: bool = True

    @property
    def span(self) -> Span:
        """The places of the tokens."""
        return Span(self.slot, self.start, len(self.tokens), self.want_logits)


@dataclass(frozen=True, slots=True)
class Span:
    """The places of the next `length` tokens of one sequence: a `Segment` without its tokens."""

    slot: Slot
    start: int
    length: int
    want_last: bool = True


class Run:
    """Spans of equal length in neighbouring slots, the first of which is `slot`.

    Their tokens are the rows of the batch from `first` on. `positions` is [spans, tokens]. No
    position from `end` on is read. Without `masked`, every query sees all positions before `end`.
    """

    def __init__(
        self, slot: Slot, positions: Tensor, end: int, first: int, num_heads: int, *, masked: bool
    ) -> None:
        slab = slot.slab
        count, length = positions.shape
        self.positions = positions
        self._size = count, length
        self._num_kv_heads = slab.shape.num_kv_heads
        self._group_size = num_heads // self._num_kv_heads  # query heads per key head
        self._rows = slice(first, first + count * length)
        self._flat = slab.flat
        rows = slice(slot.row, slot.row + count)
        self._keys_values = slab.storage[:, rows, :, :end].unbind(0)
        self._mask = self._visible(end) if masked else None
        self._uses_products = count > 1 and length == 1 and positions.device.type == "cpu"
        if self._uses_products:
            self._prepare_products()
        self._places: Sequence[Tensor] = ()
        self._index: Tensor | None = None
        if masked or length > 1:
            self._index = _write_index(slot, positions)
        else:  # all tokens have the same position: one copy, without an index
            place = slab.storage[:, rows, :, end - 1]
            self._places = place.view(-1, 2, *place.shape[1:]).transpose(1, 2).unbind(0)

    def _visible(self, end: int) -> Tensor:
        """[spans, 1, tokens * group size, end]: 0 where a query may look, else -inf."""
        count, length = self._size
        hidden = torch.arange(end, device=self.positions.device) > self.positions[..., None]
        mask = torch.zeros(hidden.shape, dtype=self._flat[0].dtype, device=hidden.device)
        mask.masked_fill_(hidden, float("-inf"))
        groups = mask[:, None, :, None].expand(count, 1, length, self._group_size, end)
        return groups.reshape(count, 1, length * self._group_size, end)

    def _prepare_products(self) -> None:
        """Arrange for `_attend_by_products`: keys and values [spans * kv_heads, end, dim]."""
        self._keys_values = tuple(each.flatten(0, 1) for each in self._keys_values)
        if self._mask is None:
            self._mask = self._keys_values[0].new_zeros(1, 1, 1)
        else:
            self._mask = self._mask[:, 0, :1].repeat_interleave(self._num_kv_heads, 0)

    def _attend_by_products(self, layer: int, queries: Tensor) -> Tensor:
        """`attend` as two matrix products, for several spans of one token on a CPU.

        A step of 8 chats on two threads takes 17.1 ms, with torch's own attention 18.9 ms.
        """
        assert self._mask is not None
        dim = queries.shape[-1]
        queries = queries.reshape(-1, self._group_size, dim)
        keys, values = self._keys_values[2 * layer : 2 * layer + 2]
        scores = torch.baddbmm(self._mask, queries, keys.transpose(1, 2), alpha=dim**-0.5)
        return torch.bmm(scores.softmax(-1), values).view(self._size[0], -1)

    def write(self, layer: int, keys_values: Tensor) -> None:
        """Store this run's rows of [tokens, 2 * kv_heads, dim] in the cache."""
        rows = self._own(keys_values)
        if self._index is None:
            place = self._places[layer]
            place.copy_(rows.view(place.shape))
        else:
            self._flat[layer].index_copy_(0, self._index, rows.reshape(-1, rows.shape[-1]))

    def attend(self, layer: int, queries: Tensor) -> Tensor:
        """Attend this run's rows of [tokens, heads, dim] → [its tokens, heads * dim]."""
        if self._uses_products:
            return self._attend_by_products(layer, self._own(queries))
        count, length = self._size
        kv_heads, groups, dim = self._num_kv_heads, self._group_size, queries.shape[-1]
        queries = self._own(queries)
        if length == 1:
            queries = queries.view(count, kv_heads, groups, dim)
        else:
            queries = queries.view(count, length, kv_heads, groups, dim)
            queries = queries.transpose(1, 2).flatten(2, 3)
        keys, values = self._keys_values[2 * layer : 2 * layer + 2]
        out = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=self._mask)
        if length == 1:  # every view counts: a step of one token comes here in each of 30 layers
            return out.reshape(count, -1)
        out = out.reshape(count, kv_heads, length, groups, dim).transpose(1, 2)
        return out.reshape(count * length, -1)

    def _own(self, rows: Tensor) -> Tensor:
        """This run's rows of all rows of the batch; without a view if these are all."""
        count, length = self._size
        return rows if len(rows) == count * length else rows[self._rows]


def _write_index(slot: Slot, positions: Tensor) -> Tensor:
    """The rows of [spans, tokens, (keys, values), kv_heads] in a layer's flat view, flattened."""
    slab, heads = slot.slab, slot.slab.shape.num_kv_heads
    device = positions.device
    kind = torch.arange(2, device=device)[:, None] * slab.num_rows
    row = slot.row + torch.arange(len(positions), device=device)[:, None, None, None]
    line = (kind + row) * heads + torch.arange(heads, device=device)
    return (line * slab.capacity + positions[..., None, None]).flatten()


class Batch:
    """The runs of one forward pass: where its tokens are read and written."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        positions = [run.positions.flatten() for run in runs]
        self.positions = positions[0] if len(runs) == 1 else torch.cat(positions)

    def attend(self, layer: int, queries: Tensor, keys_values: Tensor) -> Tensor:
        """Store keys and values [tokens, 2 * kv_heads, dim], then attend queries
        [tokens, heads, dim] → [tokens, heads * dim]."""
        for run in self._runs:
            run.write(layer, keys_values)
        if len(self._runs) == 1:
            return self._runs[0].attend(layer, queries)
        return torch.cat([run.attend(layer, queries) for run in self._runs])


def rows_batch(slab: Slab, positions: Tensor, end: int, num_heads: int) -> Batch:
    """One token for each of a slab's first rows, at `positions` [rows], all less than `end`.

    Every row is written at its position, including rows whose output is not used.
    """
    run = Run(Slot(slab, 0), positions[:, None], end, 0, num_heads, masked=True)
    return Batch([run])


class SpanBatch(Batch):
    """The batch of some spans. `order` are their numbers in the order that the batch has them.

    `last` are the rows of the last tokens of spans that want logits; None if these are all rows.
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
        are_all_rows = last == list(range(len(self.positions)))
        self.last = None if are_all_rows else on_device(last, self.positions.device)


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
    """The sort key by which the spans of one run become neighbours."""
    return span.length, id(span.slot.slab), span.slot.row


def _neighbours(ordered: Sequence[Span]) -> list[list[Span]]:
    """The spans grouped into runs."""
    groups = [[ordered[0]]]
    for before, span in pairwise(ordered):
        length, slab, row = _place(before)
        if _place(span) == (length, slab, row + 1):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _last_rows(spans: Sequence[Span], order: Sequence[int]) -> list[int]:
    """The batch row of the last token of each span that wants logits, in the caller's order."""
    ends: dict[int, int] = {}
    total = 0
    for i in order:
        total += spans[i].length
        ends[i] = total - 1
    return [ends[i] for i, span in enumerate(spans) if span.want_last]
