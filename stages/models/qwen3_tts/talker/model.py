"""The two transformers of the talker, with their embeddings and heads.

A frame is `num_groups` codes. The talker, a Qwen3 language model, gives the first code of each
frame. The code predictor, a smaller model, reads the talker's hidden state and that code, and gives
the other codes one by one. What the talker reads next is the sum of the embeddings of the frame's
codes and of one text token. (Qwen3-TTS technical report, arXiv 2601.15621.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.attention import Batch, Run
from stages.kernels.device import on_device
from stages.kernels.kv_cache import Slab, Slot
from stages.kernels.transformer import DecoderOnlyTransformer, Source, TransformerConfig
from stages.models.qwen3_tts.talker.prompt import SPEAKER
from stages.models.qwen3_tts.talker.weight_shapes import check_weight_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from stages.kernels.linear import Linear
    from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
    from stages.models.qwen3_tts.talker.model_config import LayerSizes, QwenTtsConfig
    from stages.models.qwen3_tts.talker.prompt import Prompt
    from stages.weights.safetensors import Weights

    # Logits [rows, vocabulary] and the number of the group, from 1 → codes [rows].
    Choose = Callable[[Tensor, int], Tensor]


class TalkerModel:
    """The talker: embeddings, layers and head."""

    def __init__(
        self, config: QwenTtsConfig, weights: Weights, device: torch.device, dtype: torch.dtype
    ) -> None:
        """Load the weights. Raises CheckpointError if one is missing or has another shape."""
        self.config = config
        check_weight_shapes(config, weights)
        source = Source(weights, device, dtype)
        self.dtype = source.state_dtype
        self.device = device
        self.decoder = DecoderOnlyTransformer(_transformer(config.talker), source, "talker.model.")
        self._text = source.rows("talker.model.text_embedding")
        self._project = [
            source.linear(f"talker.text_projection.linear_{fc}", bias=True) for fc in ("fc1", "fc2")
        ]
        self._head = source.linear("talker.codec_head")
        # The embeddings of all groups in one table: a frame is one lookup.
        names = [f"talker.code_predictor.model.codec_embedding.{g}" for g in _later_groups(config)]
        self.codec_table = source.rows("talker.model.codec_embedding", *names)
        sizes = [config.talker.vocab_size, *[config.predictor.vocab_size] * len(names)]
        self._offsets = torch.tensor([0, *sizes[:-1]], device=device).cumsum(0)

    def embed_text(self, tokens: Tensor) -> Tensor:
        """Embed text tokens [n] → [n, hidden]."""
        state = functional.embedding(tokens, self._text)
        state = functional.silu(self._project[0](state))
        return self._project[1](state).to(self.dtype)

    def embed_codes(self, codes: Tensor, group: int = 0) -> Tensor:
        """Embed codes [n] of one group → [n, hidden]."""
        return functional.embedding(codes + self._offsets[group], self.codec_table).to(self.dtype)

    def embed_frames(self, frames: Tensor) -> Tensor:
        """Embed whole frames [n, groups] → [n, hidden]."""
        rows = functional.embedding(frames + self._offsets, self.codec_table)
        return rows.to(self.dtype).sum(1)

    def embed_prompt(
        self, text: Sequence[int], prompt: Prompt, voice: CopiedVoice | None
    ) -> Tensor:
        """Embed a whole prompt. `text` are all its text tokens → [prompt.length, hidden]."""
        embeddings = self.embed_text(on_device(text, self.device))
        codes = [*prompt.codes, self.config.control.bos]
        beside = self.embed_codes(on_device([max(0, code) for code in codes], self.device))
        if voice is not None:
            beside[codes.index(SPEAKER)] = voice.speaker
            if prompt.num_reference_frames:
                beside = torch.cat([beside, self.embed_frames(voice.frames)])
        embeddings[len(embeddings) - len(beside) :] += beside
        return embeddings

    def logits(self, states: Tensor) -> Tensor:
        """Hidden states [n, hidden] → float32 logits [n, vocabulary]."""
        return self._head(states).float()


class CodePredictor:
    """Predicts all codes of a frame but the first. It keeps nothing between frames."""

    def __init__(self, talker: TalkerModel, weights: Weights, dtype: torch.dtype) -> None:
        config = talker.config
        source = Source(weights, talker.device, dtype)
        prefix = "talker.code_predictor."
        self._talker = talker
        self._num_groups = config.num_groups
        self._decoder = DecoderOnlyTransformer(
            _transformer(config.predictor), source, f"{prefix}model."
        )
        self._heads = [source.linear(f"{prefix}lm_head.{g}") for g in _later_groups(config)]
        self._project: Linear | None = None
        if config.predictor.hidden_size != config.talker.hidden_size:
            self._project = source.linear(f"{prefix}small_to_mtp_projection", bias=True)
        self._batches: dict[int, list[Batch]] = {}

    def prepare(self, num_rows: int) -> None:
        """Allocate the KV cache for steps of `num_rows` rows."""
        if num_rows in self._batches:
            return
        shape = self._decoder.cache_shape
        slab = Slab(shape, self._num_groups, num_rows)
        heads = self._decoder.config.num_heads
        device = shape.device
        first = torch.arange(2, device=device).expand(num_rows, 2)
        runs = [Run(Slot(slab, 0), first, 2, 0, heads, masked=True)]
        for index in range(2, self._num_groups):
            position = torch.full((num_rows, 1), index, device=device)
            runs.append(Run(Slot(slab, 0), position, index + 1, 0, heads, masked=False))
        self._batches[num_rows] = [Batch([run]) for run in runs]

    def __call__(self, states: Tensor, first: Tensor, choose: Choose) -> Tensor:
        """The talker's hidden states [rows, hidden] and first codes [rows] → frames [rows, groups].

        `prepare` must have been called for that number of rows.
        """
        codes = [first]
        embeddings = torch.stack([states, self._talker.embed_codes(first)], 1).flatten(0, 1)
        for group, batch in enumerate(self._batches[len(first)], 1):
            hidden = self._decoder(self._projected(embeddings), batch)
            last = hidden.view(len(first), -1, hidden.shape[-1])[:, -1]
            codes.append(choose(self._heads[group - 1](last).float(), group))
            embeddings = self._talker.embed_codes(codes[-1], group)
        return torch.stack(codes, 1)

    def _projected(self, states: Tensor) -> Tensor:
        if self._project is None:
            return states
        return self._project(states).to(states.dtype)


def _transformer(sizes: LayerSizes) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=sizes.vocab_size,
        hidden_size=sizes.hidden_size,
        intermediate_size=sizes.intermediate_size,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        num_kv_heads=sizes.num_kv_heads,
        head_dim=sizes.head_dim,
        max_tokens=sizes.max_tokens,
        rope_theta=sizes.rope_theta,
        rms_eps=sizes.rms_eps,
        tied_head=False,
        qk_norm=True,
        qkv_bias=sizes.qkv_bias,
    )


def _later_groups(config: QwenTtsConfig) -> range:
    return range(config.num_groups - 1)
