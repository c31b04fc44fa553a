"""The straightforward peer of openima's training: what a researcher would write in an afternoon.

Two GATConv layers of PyTorch Geometric, dense float32 features, the whole graph passed twice per
step, the contrastive loss with m x m masks, scikit-learn's K-Means and silhouette. Nothing is
slow on purpose and nothing is clever. It trains OpenIMA from its second epoch on, with all terms.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.metrics import silhouette_score
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from openima.graph.task import Task
from openima.methods.base import Recipe
from openima.methods.openima import pseudo_labels
from openima.metrics import imbalance_and_separation, open_world_accuracy, validation_accuracy
from openima.nn.gat import EncoderConfig
from openima.train.snapshot import Snapshot

BASE_TEMPERATURE = 0.07


class Encoder(nn.Module):
    """Two attention layers: heads joined after the first, averaged (after ELU) after the second."""

    def __init__(self, n_features: int, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        heads, width = config.heads, config.hidden
        self.convs = nn.ModuleList(
            GATConv(
                n_inputs,
                width,
                heads,
                negative_slope=config.negative_slope,
                dropout=config.attention_dropout,
                add_self_loops=False,
            )
            for n_inputs in (n_features, heads * width)
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return unit-length embeddings of all nodes, (N, d)."""
        for conv in self.convs:
            x = F.dropout(x, self.config.feature_dropout, self.training)
            x = F.elu(conv(x, edge_index))
        x = x.view(len(x), self.config.heads, self.config.hidden).mean(1)
        return F.normalize(x, dim=1)


def supcon(z: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """Supervised contrastive loss of the rows of `z` (m, d), scaled by temperature / 0.07."""
    itself = torch.eye(len(z), dtype=torch.bool)
    positive = (ids[:, None] == ids) & ~itself
    similarities = (z @ z.t() / temperature).masked_fill(itself, -math.inf)
    log_share = F.log_softmax(similarities, dim=1).masked_fill(~positive, 0.0)
    loss = -(log_share.sum(1) / positive.sum(1)).mean()
    return temperature / BASE_TEMPERATURE * loss


class Peer:
    """A training run of OpenIMA at a recipe's settings, past the warm-up.

    `edge_share` below 1 keeps a random share of the edges, for graphs on which a step needs more
    memory than there is.
    """

    def __init__(self, task: Task, recipe: Recipe, edge_share: float = 1.0) -> None:
        config = recipe.train
        torch.manual_seed(config.seed)
        self.rng = np.random.default_rng(config.seed)
        self.task, self.recipe = task, recipe
        features = task.graph.features
        dense = features.copy() if isinstance(features, np.ndarray) else features.toarray()
        self.x = torch.from_numpy(dense.astype(np.float32, copy=False))
        self.edge_index = self._edges(edge_share)
        self.encoder = Encoder(task.graph.n_features, recipe.encoder)
        self.head = nn.Linear(recipe.encoder.hidden, task.n_classes)
        self.optimiser = torch.optim.Adam(
            [*self.encoder.parameters(), *self.head.parameters()],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self.train_nodes = torch.from_numpy(task.train)
        self.train_labels = torch.from_numpy(task.labels[task.train])
        self.ids = torch.empty(0, dtype=torch.int64)

    def _edges(self, share: float) -> Tensor:
        graph = self.task.graph
        targets = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
        edges = np.stack([graph.sources, targets])[:, self.rng.random(graph.n_edges) < share]
        loops = np.tile(np.arange(graph.n_nodes), (2, 1))
        return torch.from_numpy(np.concatenate([edges, loops], axis=1).astype(np.int64))

    def prepare(self) -> None:
        """Give pseudo labels to the nodes, and take one step that is not measured."""
        self.label_nodes(self.snapshot())
        self.step(self.rng.permutation(self.task.graph.n_nodes)[: self.recipe.train.batch_size])

    def one_epoch(self, seconds: float = math.inf) -> Iterator[None]:
        """Train one epoch, yielding after every step, then look at all nodes.

        After `seconds` of processor time the steps that are left are skipped.
        """
        order = self.rng.permutation(self.task.graph.n_nodes)
        size = self.recipe.train.batch_size or len(order)
        started = time.process_time()
        for start in range(0, len(order), size):
            self.step(order[start : start + size])
            yield
            if time.process_time() - started > seconds:
                break
        snapshot = self.snapshot()
        self.measure(snapshot)
        self.label_nodes(snapshot)

    def step(self, nodes: NDArray[np.int64]) -> None:
        """Take one optimiser step."""
        self.encoder.train()
        loss = self.loss(torch.from_numpy(nodes))
        self.optimiser.zero_grad()
        torch.autograd.backward([loss])
        self.optimiser.step()

    def loss(self, nodes: Tensor) -> Tensor:
        """Add up the three terms, from two passes over the whole graph."""
        config = self.recipe.config
        views = [self.encoder(self.x, self.edge_index) for _ in range(2)]
        z = torch.cat([view[nodes] for view in views])
        ids = self.ids[nodes].repeat(2)
        total = supcon(z, ids, config.temperature)
        total = total + supcon(F.normalize(self.head(z), dim=1), ids, config.temperature)
        for view in views:
            logits = self.head(view[self.train_nodes])
            total = total + config.eta * F.cross_entropy(logits, self.train_labels)
        return total

    def snapshot(self) -> Snapshot:
        """Embed all nodes without dropout, in one pass over the whole graph."""
        self.encoder.eval()
        with torch.no_grad():
            z = self.encoder(self.x, self.edge_index).numpy()
        config = self.recipe.train
        return Snapshot(1, z, None, self.task.n_classes, config.clustering, config.seed)

    def label_nodes(self, snapshot: Snapshot) -> None:
        """Give each node its label, else its pseudo label, else an id of its own."""
        ids = pseudo_labels(snapshot, self.task.labels, self.recipe.config.pseudo_share)
        ids[self.task.train] = self.task.labels[self.task.train]
        own = self.task.n_classes + np.arange(len(ids))
        self.ids = torch.from_numpy(np.where(ids >= 0, ids, own))

    def measure(self, snapshot: Snapshot) -> dict[str, float]:
        """Measure what openima measures after an epoch; the silhouette on as many nodes."""
        task, groups = self.task, snapshot.clusters.labels
        others = task.unlabelled
        sample = None if len(others) <= 20_000 else 10_000
        row = {
            "sc": float(silhouette_score(snapshot.z[others], groups[others], sample_size=sample)),
            "val_acc": validation_accuracy(groups[task.val], task.labels[task.val]),
        }
        if task.truth is not None:
            truth = task.truth
            row["all"] = open_world_accuracy(groups[task.test], truth[task.test], task.n_seen).all
            row["separation"] = imbalance_and_separation(snapshot.z, truth, task.n_seen).separation
        return row
