"""Networks that take one mapping, graphs, and embeddings of users and items."""

from collections.abc import Mapping

import torch
from tests.networks._entry import SAMPLES, STEPS, Built, Made, numbers, tokens
from torch import Tensor, nn

__all__ = ["EMBEDDINGS", "GRAPHS", "ONE_MAPPING"]

NODES = 5
RING = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])


class Table(nn.Module):
    """Numbers and categories in one mapping."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(5, 4)
        self.body = nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        joined = torch.cat([batch["numbers"], self.kinds(batch["kind"])], dim=1)
        return self.head(self.body(joined))


class Detector(nn.Module):
    """Gives a mapping as well, as mmdetection's and NeMo's do."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())
        self.box, self.label = nn.Linear(8, 4), nn.Linear(8, 3)

    def forward(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        pooled = self.body(batch["image"]).mean(dim=(2, 3))
        return {"box": self.box(pooled), "label": self.label(pooled)}


class Text(nn.Module):
    """Masked means of words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(17, 8), nn.LayerNorm(8)
        self.hidden, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        mask = inputs["mask"].unsqueeze(-1).float()
        words = self.norm(self.words(inputs["ids"])) * mask
        return self.head(self.hidden(words.sum(dim=1) / mask.sum(dim=1)).relu())


class Fusion(nn.Module):
    """Pictures and text."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.ReLU())
        self.text, self.join = nn.EmbeddingBag(17, 8), nn.Linear(16, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        both = torch.cat([self.image(batch["image"]), self.text(batch["ids"])], dim=1)
        return self.head(self.join(both).relu())


class Forecast(nn.Module):
    """A GRU and what is known of the whole series."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.known = nn.GRU(3, 8, batch_first=True), nn.Linear(2, 8)
        self.head = nn.Linear(16, 4)

    def forward(self, x: dict[str, Tensor]) -> Tensor:
        series, _ = self.rnn(x["past"])
        return self.head(torch.cat([series[:, -1], self.known(x["static"])], dim=1))


class Convolve(nn.Module):
    """One graph convolution: a mean over neighbours, nodes on the axis before the last."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.own, self.other = nn.Linear(before, after), nn.Linear(before, after, bias=False)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        summed = torch.zeros_like(nodes).index_add(-2, target, nodes.index_select(-2, source))
        return self.own(nodes) + self.other(summed)


class NodeGraph(nn.Module):
    """One graph, an output per node: its samples influence one another."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([Convolve(4, 8), Convolve(8, 8)])
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.head(x)


class Traffic(nn.Module):
    """A graph that all samples share: ``[B, nodes, F]`` and ``edge_index``."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([Convolve(4, 8), Convolve(8, 8)])
        self.head = nn.Linear(8, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).tanh()
        return self.head(x).squeeze(-1)


class Molecules(nn.Module):
    """Several graphs in one, pooled by `batch`: an output per graph."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([Convolve(4, 8), Convolve(8, 8)])
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        pooled = x.new_zeros(SAMPLES, x.shape[1]).index_add(0, batch, x)
        return self.head(pooled)


class Attend(nn.Module):
    """A graph attention network in dense form, with the adjacency matrix of each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.norm = nn.Linear(4, 8), nn.LayerNorm(8)
        self.mix, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, nodes: Tensor, adjacency: Tensor) -> Tensor:
        hidden = self.norm(self.enter(nodes))
        scores = (hidden @ hidden.mT).masked_fill(~adjacency, -1e9)
        return self.head(self.mix(scores.softmax(dim=-1) @ hidden).relu().mean(dim=1))


class EdgeScores(nn.Module):
    """Edges of one graph as samples: whether two nodes are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = nn.Embedding(NODES, 8)
        self.body = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, pairs: Tensor, edge_index: Tensor) -> Tensor:
        known = self.nodes.weight
        near = torch.zeros_like(known).index_add(0, edge_index[1], known[edge_index[0]])
        both = (known + near)[pairs].flatten(1)
        return self.body(both)


def _molecules() -> Built:
    rings = torch.cat([RING + NODES * at for at in range(SAMPLES)], dim=1)
    owner = torch.arange(SAMPLES).repeat_interleave(NODES)
    x = torch.randn(SAMPLES * NODES, 4)
    return Molecules(), {"x": x, "edge_index": rings, "batch": owner}


def _attend() -> Built:
    joined = torch.rand(SAMPLES, NODES, NODES) > 0.5
    joined |= torch.eye(NODES, dtype=torch.bool)
    return Attend(), {"nodes": numbers(NODES, 4), "adjacency": joined}


class Factors(nn.Module):
    """Matrix factorisation: nothing but embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(9, 6), nn.Embedding(7, 6)
        self.user_bias, self.item_bias = nn.Embedding(9, 1), nn.Embedding(7, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        dot = (self.users(user) * self.items(item)).sum(dim=-1)
        return dot + self.user_bias(user).squeeze(-1) + self.item_bias(item).squeeze(-1)


class NeuralFactors(nn.Module):
    """Neural collaborative filtering."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(9, 6), nn.Embedding(7, 6)
        self.body = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return self.body(torch.cat([self.users(user), self.items(item)], dim=-1))


class Bag(nn.Module):
    """Words in a bag, straight to classes."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(17, 8), nn.Linear(8, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.words(ids))


class TwoTowers(nn.Module):
    """Users and items in towers of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.user = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        self.item = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return (self.user(user) * self.item(item)).sum(dim=-1)


class WideAndDeep(nn.Module):
    """A linear part beside a deep one."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(5, 3) for _ in range(3))
        self.wide = nn.Linear(4, 1)
        self.deep = nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        coded = [layer(kind) for layer, kind in zip(self.kinds, kinds.unbind(1), strict=True)]
        return self.wide(numbers) + self.head(self.deep(torch.cat([numbers, *coded], 1)))


ONE_MAPPING: dict[str, Made] = {
    "table as a dict": lambda: (Table(), {"numbers": numbers(3), "kind": tokens(5)}),
    "detector": lambda: (Detector(), {"image": numbers(3, 6, 6)}),
    "text as a dict": lambda: (
        Text(),
        {"ids": tokens(17, STEPS), "mask": torch.ones(SAMPLES, STEPS, dtype=torch.long)},
    ),
    "pictures and text": lambda: (Fusion(), {"image": numbers(3, 4, 4), "ids": tokens(17, 5)}),
    "forecast": lambda: (Forecast(), {"past": numbers(STEPS, 3), "static": numbers(2)}),
}
GRAPHS: dict[str, Made] = {
    "nodes of one graph": lambda: (
        NodeGraph(),
        {
            "x": torch.randn(SAMPLES, 4),
            "edge_index": torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]),
        },
    ),
    "one graph for all samples": lambda: (Traffic(), {"x": numbers(NODES, 4), "edge_index": RING}),
    "molecules": _molecules,
    "dense graph attention": _attend,
    "pairs of nodes": lambda: (EdgeScores(), {"pairs": tokens(NODES, 2), "edge_index": RING}),
}
EMBEDDINGS: dict[str, Made] = {
    "matrix factorisation": lambda: (Factors(), {"user": tokens(9), "item": tokens(7)}),
    "neural factorisation": lambda: (NeuralFactors(), {"user": tokens(9), "item": tokens(7)}),
    "bag of words": lambda: (Bag(), tokens(17, 5)),
    "two towers": lambda: (TwoTowers(), {"user": tokens(9), "item": numbers(3)}),
    "wide and deep": lambda: (WideAndDeep(), {"numbers": numbers(4), "kinds": tokens(5, 3)}),
}
