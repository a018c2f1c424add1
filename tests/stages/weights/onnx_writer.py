"""Writes ONNX files with weights, nodes and a graph that runs.

It also writes small Piper voices with random weights, which have the tensor names of real ones.
"""
# ruff: noqa: RUF001

import json
import struct
from pathlib import Path

import numpy as np

FLOAT, INT64 = 1, 7
PHONEMES = "_^$ ,.?!abdefhijklmnopstuvwxzæðŋɐɑɔɕəɚɛɜɡɪɹɾʃʊʌʒˈˌːθ"


def varint(value):
    low, high = value & 127, value >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def field(number, value):
    """One protobuf field: an int as a varint, a float as fixed, anything else by length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, values, *, packed=False):
    shape = values.shape
    dims = (
        field(1, b"".join(map(varint, shape))) if packed else b"".join(field(1, n) for n in shape)
    )
    return dims + field(2, FLOAT) + field(8, name) + field(9, values.tobytes())


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, n) for n in value) + field(20, 7)


def named_value(name):
    """A float tensor of any shape, as an input or output of the graph."""
    return field(1, name) + field(2, field(1, field(1, FLOAT)))


class Graph:
    """Nodes and initialisers of one file."""

    def __init__(self, seed=0):
        self.generator = np.random.default_rng(seed)
        self.body = b""

    def weight(self, name, shape, scale=None):
        scale = scale if scale is not None else 0.7 / np.sqrt(np.prod(shape[1:]) or 1)
        values = self.generator.normal(0, scale, shape).astype(np.float32)
        self.body += field(5, tensor(name, values))
        return name

    def node(self, kind, name, inputs, output, **attributes):
        node = b"".join(field(1, i) for i in inputs) + field(2, output)
        node += field(3, name) + field(4, kind)
        node += b"".join(field(5, attribute(*item)) for item in attributes.items())
        self.body += field(1, node)
        return output

    def conv(self, module, shape, given, *, dilation=1, groups=1, stride=0):
        """A convolution with its bias, as torch's exporter names both."""
        up = stride > 0
        pad = (shape[2] - stride) // 2 if up else (shape[2] - 1) // 2 * dilation
        inputs = [given, self.weight(f"{module}.weight", shape)]
        inputs.append(self.weight(f"{module}.bias", (shape[1] if up else shape[0],), 0.1))
        kind = "ConvTranspose" if up else "Conv"
        return self.node(
            kind,
            f"/{module}/{kind}",
            inputs,
            f"/{module}/out",
            dilations=[dilation],
            group=groups,
            pads=[pad, pad],
            strides=[stride or 1],
        )

    def file(self, inputs, outputs):
        body = self.body
        body += field(2, "voice") + b"".join(field(11, named_value(i)) for i in inputs)
        body += b"".join(field(12, named_value(o)) for o in outputs)
        return field(1, 8) + field(7, body) + field(8, field(2, 15))


LAYOUTS = {
    # sample rate, width, upsamplings (rate, kernel), residual kernels, two convolutions a step
    "low": (16000, 8, ((8, 16), (8, 16), (4, 8)), (3, 5), False),
    "medium": (22050, 12, ((8, 16), (8, 16), (4, 8)), (3, 5, 7), False),
    "high": (22050, 12, ((8, 16), (8, 16), (2, 4), (2, 4)), (3, 7), True),
}
SPEAKER_SIZE = 5


def write_decoder(graph, quality, num_speakers):
    """The decoder as a graph that runs: from `frames` [1, width, n] and `speaker` to `samples`."""
    _, width, ups, kernels, pairs = LAYOUTS[quality]
    channels = 2 ** (len(ups) + 2)
    rows = graph.conv("dec.conv_pre", (channels, width, 7), "frames")
    if num_speakers > 1:
        bias = graph.conv("dec.cond", (channels, SPEAKER_SIZE, 1), "speaker")
        rows = graph.node("Add", "/dec/Add", [rows, bias], "/dec/Add_out")
    for number, (rate, kernel) in enumerate(ups):
        rows = graph.node("LeakyRelu", "", [rows], f"up{number}", alpha=0.1)
        shape = (channels, channels // 2, kernel)
        rows = graph.conv(f"dec.ups.{number}", shape, rows, stride=rate)
        channels //= 2
        blocks = [
            _block(graph, f"dec.resblocks.{number * len(kernels) + k}", channels, size, rows, pairs)
            for k, size in enumerate(kernels)
        ]
        rows = graph.node("Mean", "", blocks, f"mean{number}")
    rows = graph.node("LeakyRelu", "", [rows], "last", alpha=0.01)
    rows = graph.conv("dec.conv_post", (1, channels, 7), rows)
    graph.node("Tanh", "/dec/Tanh", [rows], "samples")


def _block(graph, module, channels, size, rows, pairs):
    for step, dilation in enumerate((1, 3)):
        kinds = (("convs1", dilation), ("convs2", 1)) if pairs else (("convs", dilation),)
        change = rows
        for kind, stretch in kinds:
            change = graph.node("LeakyRelu", "", [change], f"{module}.{kind}{step}in", alpha=0.1)
            shape = (channels, channels, size)
            change = graph.conv(f"{module}.{kind}.{step}", shape, change, dilation=stretch)
        rows = graph.node("Add", "", [change, rows], f"{module}.{step}out")
    return rows


def write_text_side(graph, quality, num_speakers):
    """The tensors of everything before the decoder; its nodes do not run."""
    width = LAYOUTS[quality][1]
    graph.weight("enc_p.emb.weight", (len(PHONEMES), width), 0.5)
    for n in range(2):
        _encoder_layer(graph, width, n)
    graph.conv("enc_p.proj", (2 * width, width, 1), "x")
    for module in ("dp", "dp.flows.3", "dp.flows.5"):
        _duration_module(graph, width, module)
    graph.weight("dp.flows.0.m", (2, 1), 0.1)
    graph.weight("dp.flows.0.logs", (2, 1), 0.1)
    for flow in (0, 2):
        _coupling(graph, width, f"flow.flows.{flow}", several=num_speakers > 1)
    if num_speakers > 1:
        graph.conv("dp.cond", (width, SPEAKER_SIZE, 1), "x")
        graph.weight("emb_g.weight", (num_speakers, SPEAKER_SIZE), 1.0)


def _encoder_layer(graph, width, n):
    for kind in "qkvo":
        graph.conv(f"enc_p.encoder.attn_layers.{n}.conv_{kind}", (width, width, 1), "x")
    for kind in "kv":
        graph.weight(f"enc_p.encoder.attn_layers.{n}.emb_rel_{kind}", (1, 9, width // 2))
    graph.conv(f"enc_p.encoder.ffn_layers.{n}.conv_1", (16, width, 3), "x")
    graph.conv(f"enc_p.encoder.ffn_layers.{n}.conv_2", (width, 16, 3), "x")
    for norm in (1, 2):
        _norm(graph, f"enc_p.encoder.norm_layers_{norm}.{n}", width)


def _duration_module(graph, width, module):
    graph.conv(f"{module}.pre", (width, width if module == "dp" else 1, 1), "x")
    for layer in range(2):
        separate = f"{module}.convs.convs_sep.{layer}"
        graph.conv(separate, (width, 1, 3), "x", dilation=3**layer, groups=width)
        graph.conv(f"{module}.convs.convs_1x1.{layer}", (width, width, 1), "x")
        _norm(graph, f"{module}.convs.norms_1.{layer}", width)
        _norm(graph, f"{module}.convs.norms_2.{layer}", width)
    graph.conv(f"{module}.proj", (width if module == "dp" else 29, width, 1), "x")


def _coupling(graph, width, module, *, several):
    graph.conv(f"{module}.pre", (width, width // 2, 1), "x")
    for layer in range(2):
        graph.conv(f"{module}.enc.in_layers.{layer}", (2 * width, width, 5), "x")
        out = width if layer else 2 * width
        graph.conv(f"{module}.enc.res_skip_layers.{layer}", (out, width, 1), "x")
    if several:
        graph.conv(f"{module}.enc.cond_layer", (4 * width, SPEAKER_SIZE, 1), "x")
    graph.conv(f"{module}.post", (width // 2, width, 1), "x")


def _norm(graph, module, width):
    graph.weight(f"{module}.gamma", (width,), 1.0)
    graph.weight(f"{module}.beta", (width,), 0.1)


def write_voice(folder, name="toy", quality="medium", num_speakers=1, seed=0, **settings):
    """`name.onnx` and its `.onnx.json`; the path of the first."""
    graph = Graph(seed)
    write_decoder(graph, quality, num_speakers)
    write_text_side(graph, quality, num_speakers)
    path = Path(folder) / f"{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(graph.file(["frames", "speaker"], ["samples"]))
    rate_hz = LAYOUTS[quality][0]
    described = {
        "audio": {"sample_rate": rate_hz, "quality": quality},
        "espeak": {"voice": "en-us"},
        "language": {"code": "en_US"},
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
        "phoneme_type": "espeak",
        "num_speakers": num_speakers,
        "speaker_id_map": {f"s{n}": n for n in range(num_speakers)} if num_speakers > 1 else {},
        "phoneme_id_map": {symbol: [n] for n, symbol in enumerate(PHONEMES)},
    }
    Path(f"{path}.json").write_text(json.dumps(described | settings))
    return path


def write_decoder_alone(folder, quality, num_speakers, seed=0):
    """The decoder of `write_voice` as a file that onnxruntime runs."""
    graph = Graph(seed)
    write_decoder(graph, quality, num_speakers)
    inputs = ["frames", "speaker"] if num_speakers > 1 else ["frames"]
    path = Path(folder) / f"decoder-{quality}-{num_speakers}.onnx"
    path.write_bytes(graph.file(inputs, ["samples"]))
    return path
