"""The BiLSTM as nodes of an ONNX graph, and the builder that collects nodes.

Written by hand because torch's exporter unrolls an LSTM over the length of its example:
ONNX has an LSTM of its own that reads both ways and knows each sentence's length. Its gates
are in the order input, output, forget, cell; torch's are input, forget, cell, output.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from superconext.core.errors import ConfigError

if TYPE_CHECKING:
    from superconext.encoders.bilstm import BiLSTMEncoder


#: Version of the operators.
OPSET = 17


class GraphBuilder:
    """Collects nodes and constants; `node` returns the name of what it makes."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        from onnx import numpy_helper

        name = self._name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = output or self._name(kind.lower())
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def cut(self, values: str, start: int, end: int, axis: int) -> str:
        """A slice along one axis."""
        edges = [self.constant([number]) for number in (start, end, axis)]
        return self.node("Slice", values, *edges)

    def traced(self, module: torch.nn.Module, inputs: dict[str, str]) -> str:
        """Name of what a module makes of ids `[N, T]` and lengths `[N]`, as torch traces it.

        inputs: the names in this graph of the module's inputs `ids` and `lengths`.
        """
        import onnx
        from onnx import compose

        example = torch.ones(2, 3, dtype=torch.int64), torch.tensor([3, 2])
        stream = io.BytesIO()
        with warnings.catch_warnings():  # of what it takes for constant, which export checks
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                example,
                stream,  # type: ignore[arg-type]
                input_names=list(inputs),
                output_names=["out"],
                dynamic_axes={"ids": {0: "n", 1: "t"}, "lengths": {0: "n"}, "out": {0: "n"}},
                opset_version=OPSET,
                dynamo=False,
            )
        prefix = self._name("traced") + "/"
        made = compose.add_prefix(onnx.load_from_string(stream.getvalue()), prefix).graph
        for name, own in inputs.items():
            self.nodes.append(onnx.helper.make_node("Identity", [own], [prefix + name]))
        self.nodes += made.node
        self.constants += made.initializer
        return f"{prefix}out"

    def widened(self, values: str, *axes: int) -> str:
        return self.node("Unsqueeze", values, self.constant(list(axes)))


class WordNodes:
    """The nodes of an encoder over word vectors: the words in front and the pooling behind.

    encoder: has `embedding`, `pool` and `sentence_size`.
    """

    def __init__(self, graph: GraphBuilder, encoder: Any, lengths: str) -> None:
        self.graph, self.encoder, self.lengths = graph, encoder, lengths
        self.shape = graph.node("Shape", "ids")
        self.width = graph.node("Gather", self.shape, graph.constant(1))

    def words(self, oov_vectors: str) -> str:
        """Vectors `[N, T, e]`: rows of the vocabulary, and beyond it of `oov_vectors`."""
        graph = self.graph
        table = self.encoder.embedding.table().detach().cpu().numpy()
        size = graph.constant(len(table))
        known = graph.node("Less", "ids", size)
        zero = graph.constant(0)
        own = graph.node("Where", known, "ids", zero)
        # A row of zeros in front, so that there is a row to take where nobody is new.
        blank = graph.constant(np.zeros((1, table.shape[1])), np.float32)
        others = graph.node("Concat", blank, oov_vectors, axis=0)
        beyond = graph.node("Sub", "ids", graph.constant(len(table) - 1))
        other = graph.node("Where", known, zero, beyond)
        rows = graph.node("Gather", graph.constant(table, np.float32), own)
        return graph.node(
            "Where", graph.widened(known, 2), rows, graph.node("Gather", others, other)
        )

    def pooled(self, states: str) -> str:
        """Token states `[N, T, d]` to `[N, d]`."""
        graph, lengths = self.graph, self.lengths
        from onnx import TensorProto

        pooling = self.encoder.pool.__name__
        if pooling == "pool_last":
            half = self.encoder.sentence_size // 2
            last = graph.node("Sub", lengths, graph.constant([1]))
            texts = graph.node("Gather", self.shape, graph.constant(0))
            rows = graph.node("Range", graph.constant(0), texts, graph.constant(1))
            where = graph.node("Concat", *(graph.widened(x, 1) for x in (rows, last)), axis=1)
            ahead = graph.cut(graph.node("GatherND", states, where), 0, half, 1)
            first = graph.node("Gather", states, graph.constant(0), axis=1)
            return graph.node("Concat", ahead, graph.cut(first, half, 2 * half, 1), axis=1)
        column = graph.node("Range", graph.constant(0), self.width, graph.constant(1))
        mask = graph.node("Less", graph.widened(column, 0), graph.widened(lengths, 1))
        mask = graph.widened(mask, 2)
        if pooling == "pool_max":
            low = graph.constant(-np.inf, np.float32)
            return graph.node(
                "ReduceMax", graph.node("Where", mask, states, low), axes=[1], keepdims=0
            )
        if pooling != "pool_mean":
            raise ConfigError(f"found {pooling}; expected pooling by last, mean or max")
        zero = graph.constant(0, np.float32)
        total = graph.node(
            "ReduceSum", graph.node("Where", mask, states, zero), graph.constant([1]), keepdims=0
        )
        number = graph.node("Cast", graph.widened(lengths, 1), to=TensorProto.FLOAT)
        return graph.node("Div", total, number)


class BiLSTMNodes(WordNodes):
    """The nodes of one BiLSTM, from ids to sentence vectors."""

    encoder: BiLSTMEncoder

    def sentence(self, oov_vectors: str) -> str:
        """Name of the sentence vectors `[N, d]`; see `Encoder.onnx_graph`."""
        graph, count = self.graph, self.encoder.class_tokens
        vectors, lengths = self.words(oov_vectors), self.lengths
        if count:
            vectors = self.between(vectors)
            lengths = graph.node("Add", lengths, graph.constant([2 * count]))
        states = self.states(vectors, lengths)
        if count:
            end = graph.node("Add", self.width, graph.constant([count]))
            edges = [graph.constant([count]), end, graph.constant([1])]
            states = graph.node("Slice", states, *edges)
        return self.pooled(states)

    def between(self, vectors: str) -> str:
        """The words `[N, T, e]` between their class tokens, `[N, T + 2C, e]`."""
        graph, count = self.graph, self.encoder.class_tokens
        assert self.encoder.class_rows is not None
        rows = self.encoder.class_rows.detach().cpu().numpy()[None]
        texts = graph.node("Gather", self.shape, graph.constant([0]))
        shape = graph.node("Concat", texts, graph.constant([1, 1]), axis=0)
        front, back = (
            graph.node("Expand", graph.constant(part, np.float32), shape)
            for part in (rows, rows[:, ::-1])
        )
        whole = graph.node("Concat", front, vectors, back, axis=1)
        # As the encoder has it: the tokens behind move up to the end of the words.
        total = graph.node("Add", self.width, graph.constant(2 * count))
        column = graph.widened(graph.node("Range", graph.constant(0), total, graph.constant(1)), 0)
        end = graph.widened(graph.node("Add", self.lengths, graph.constant([count])), 1)
        lengths = graph.widened(self.lengths, 1)
        moved = graph.node("Sub", graph.node("Add", column, self.width), lengths)
        source = graph.node("Where", graph.node("Less", column, end), column, moved)
        behind = graph.node("Add", end, graph.constant([count]))
        padding = graph.node("Sub", column, graph.constant([count]))
        source = graph.node("Where", graph.node("Less", column, behind), source, padding)
        index = graph.node("Expand", graph.widened(source, 2), graph.node("Shape", whole))
        return graph.node("GatherElements", whole, index, axis=1)

    def states(self, vectors: str, lengths: str) -> str:
        """Top layer states `[N, T, 2H]`."""
        from onnx import TensorProto

        graph, hidden = self.graph, self.encoder.sentence_size // 2
        lengths = graph.node("Cast", lengths, to=TensorProto.INT32)
        states = graph.node("Transpose", vectors, perm=[1, 0, 2])
        for ahead, back in zip(self.encoder.forwards, self.encoder.backwards, strict=True):
            both = [_weights(direction) for direction in (ahead, back)]
            weights = [
                graph.constant(np.stack(part), np.float32) for part in zip(*both, strict=True)
            ]
            states = graph.node(
                "LSTM", states, *weights, lengths, direction="bidirectional", hidden_size=hidden
            )  # [T, 2, N, H]
            states = graph.node("Transpose", states, perm=[0, 2, 1, 3])
            states = graph.node("Reshape", states, graph.constant([0, 0, 2 * hidden]))
        return graph.node("Transpose", states, perm=[1, 0, 2])


def _weights(lstm: torch.nn.Module) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W `[4H, e]`, R `[4H, H]` and B `[8H]` of one direction, gates in ONNX's order."""

    def ordered(name: str) -> np.ndarray:
        value: np.ndarray = getattr(lstm, name).detach().cpu().numpy()
        i, f, c, o = np.split(value, 4)
        return np.concatenate([i, o, f, c])

    bias = np.concatenate([ordered("bias_ih_l0"), ordered("bias_hh_l0")])
    return ordered("weight_ih_l0"), ordered("weight_hh_l0"), bias
