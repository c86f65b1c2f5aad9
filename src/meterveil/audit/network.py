"""The network behind the shipped model: one dilated stack for all appliances, and its ONNX file.

Nine residual blocks double their reach each time, so an answer draws on eight hours to either side: enough
for a dishwasher's two heatings and for the rhythm of a fridge.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper
from torch import Tensor, nn

from meterveil.audit.features import CHANNELS

WIDTH = 48
STEM_MINUTES = 9
DILATIONS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

OPSET = 17
IR_VERSION = 9
"""Fixed, so that the same weights give the same file whatever version of onnx writes it."""


class Network(nn.Module):
    """Map (batch, channel, minute) to logits (batch, appliance, minute)."""

    def __init__(self, appliances: int) -> None:
        super().__init__()
        self.stem = nn.Conv1d(CHANNELS, WIDTH, STEM_MINUTES, padding=STEM_MINUTES // 2)
        self.wide = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, 3, padding=reach, dilation=reach) for reach in DILATIONS
        )
        self.mix = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 1) for _ in DILATIONS)
        self.head = nn.Conv1d(WIDTH, appliances, 1)
        for layer in self.mix:
            nn.init.normal_(cast(Tensor, layer.weight), std=0.02)
        nn.init.constant_(cast(Tensor, self.head.bias), -3.0)

    def forward(self, seen: Tensor) -> Tensor:
        """Answer for every minute."""
        found = torch.relu(self.stem(seen))
        for wide, mix in zip(self.wide, self.mix, strict=True):
            found = found + mix(torch.relu(wide(found)))
        return cast(Tensor, self.head(torch.relu(found)))


def onnx_bytes(network: Network) -> bytes:
    """Write the network as an ONNX graph of convolutions, sums and rectifiers."""
    graph = _Graph()
    value = graph.add("Relu", graph.convolution("seen", network.stem))
    for wide, mix in zip(network.wide, network.mix, strict=True):
        inner = graph.add("Relu", graph.convolution(value, cast(nn.Conv1d, wide)))
        value = graph.add("Add", value, graph.convolution(inner, cast(nn.Conv1d, mix)))
    graph.convolution(graph.add("Relu", value), network.head, "logits")
    model = graph.model(network.head.out_channels)
    checker.check_model(model)
    return cast(bytes, model.SerializeToString(deterministic=True))


class _Graph:
    """Collect nodes and weights in the order of the computation."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def convolution(self, value: str, layer: nn.Conv1d, output: str = "") -> str:
        names = [f"{part}_{len(self.weights)}" for part in ("weight", "bias")]
        for name, part in zip(names, (layer.weight, layer.bias), strict=True):
            array = np.asarray(cast(Tensor, part).detach().numpy(), dtype=np.float32)
            self.weights.append(numpy_helper.from_array(array, name))
        pads = [cast(int, layer.padding[0])] * 2
        return self.add("Conv", value, *names, output=output, pads=pads, dilations=[int(layer.dilation[0])])

    def model(self, appliances: int) -> ModelProto:
        seen = helper.make_tensor_value_info("seen", TensorProto.FLOAT, ["batch", CHANNELS, "minute"])
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", appliances, "minute"])
        graph = helper.make_graph(self.nodes, "meterveil-audit", [seen], [logits], self.weights)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="meterveil")
