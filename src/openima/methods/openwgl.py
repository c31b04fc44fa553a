"""OpenWGL, a variational detector of new classes on graphs, extended to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from openima.errors import InputError
from openima.losses.detection import uncertainty
from openima.losses.variational import divergence, reconstruction
from openima.methods.base import Batch, Known, LossOutput, Objective, Recipe, Step, Views, register
from openima.nn.encoder import Embedding
from openima.nn.heads import linear_head
from openima.nn.pairs import links_between_targets, pair_products, random_pairs
from openima.nn.variational import VariationalConfig, VariationalEncoder, mean_of_samples, sample
from openima.predict.rejection import RejectThenCluster
from openima.train.config import TrainConfig


@dataclass(frozen=True)
class OpenWGLConfig:
    """Settings of OpenWGL; the defaults are those of its authors.

    - `divergence`, `reconstruction` and `uncertainty` weigh what is added to cross-entropy;
    - `unsure_below` is the largest probability below which a prediction counts as unsure. With
      two seen classes none is below 0.5, and the term of uncertainty is 0;
    - `samples` is how often each node is sampled to predict its class.
    """

    divergence: float = 1.0
    reconstruction: float = 1.0
    uncertainty: float = 1.0
    unsure_below: float = 0.5
    samples: int = 100

    def __post_init__(self) -> None:
        """Refuse settings without a meaning."""
        for name in ("divergence", "reconstruction", "uncertainty"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} cannot be negative", got=str(getattr(self, name)))
        if not 0 < self.unsure_below <= 1:
            raise InputError(
                "unsure_below is a probability", expected="up to 1", got=str(self.unsure_below)
            )
        if self.samples < 1:
            raise InputError("samples must be at least 1", got=str(self.samples))


class OpenWGL(Objective):
    """A variational graph auto-encoder with a classifier that may be unsure of unlabelled nodes."""

    n_views = 1
    noise_seed: Tensor

    def __init__(
        self, known: Known, dim: int, config: OpenWGLConfig, generator: torch.Generator
    ) -> None:
        """Draw a classifier's weights, and the seed of the noise that predictions see."""
        super().__init__()
        self.known = known
        self.config = config
        self.head = linear_head(dim, known.n_seen, generator)
        self.generator = generator
        self.register_buffer("noise_seed", torch.randint(1 << 62, (1,), generator=generator))

    @property
    def wants_train_nodes(self) -> bool:
        """Cross-entropy is over all training nodes in every step."""
        return True

    def before_step(self, step: Step) -> None:
        """Sample from now on with the generator of the steps."""
        self.generator = step.generator

    def loss(self, views: Views, batch: Batch) -> LossOutput:
        """Add up the terms; links are those among the nodes that the step embeds."""
        config, known = self.config, self.known
        mean, log_sigma = views.first.g, log_sigma_of(views.first)
        latent = sample(mean, log_sigma, self.generator)
        logits = self.head(latent)
        links = links_between_targets(batch.edges)
        others = random_pairs(len(latent), links.n_edges, self.generator)
        linked, random = (pair_products(latent, pairs) for pairs in (links, others))
        unlabelled = batch.rows[known.labels[batch.nodes] < 0]
        train = batch.train_rows
        terms = {
            "ce": F.cross_entropy(logits[train], known.labels[known.train]),
            "divergence": config.divergence * divergence(mean[train], log_sigma[train]),
            "reconstruction": config.reconstruction * reconstruction(linked, random),
            "uncertainty": config.uncertainty
            * uncertainty(logits[unlabelled], config.unsure_below),
        }
        total = torch.stack(list(terms.values())).sum()
        return LossOutput(total, {name: term.item() for name, term in terms.items()})

    def logits(self, embedding: Embedding) -> Tensor:
        """Classify as one of the seen classes: the mean over samples, always with the same noise.

        The classifier is linear, so the mean of its outputs is its output for the mean sample.
        """
        generator = torch.Generator(embedding.g.device).manual_seed(int(self.noise_seed))
        log_sigma = log_sigma_of(embedding)
        latent = mean_of_samples(embedding.g, log_sigma, self.config.samples, generator)
        logits: Tensor = self.head(latent)
        return logits

    def novelty(self, embedding: Embedding) -> Tensor:
        """Return how far the classifier is from being sure."""
        return 1.0 - F.softmax(self.logits(embedding), dim=1).amax(1)


def log_sigma_of(embedding: Embedding) -> Tensor:
    """Return log sigma (n, d), which a variational encoder says of nodes besides their mean."""
    if embedding.extra is None:
        raise ValueError("OpenWGL needs a variational encoder")
    return embedding.extra


OPENWGL = register(
    Recipe(
        name="openwgl",
        title="OpenWGL†",
        paper="Wu et al., OpenWGL: Open-World Graph Learning, ICDM 2020",
        objective=OpenWGL,
        config=OpenWGLConfig(),
        kind="detector",
        predictor=RejectThenCluster(),
        train=TrainConfig(epochs=100, batch_size=None, learning_rate=1e-2),
        encoder=VariationalConfig(),
        build_encoder=VariationalEncoder,
        by_dataset={
            "photo": {"normalise": True},
            "computers": {"normalise": True},
            "cs": {"normalise": True},
            "physics": {"normalise": True, "unsure_below": 0.75},  # which has two seen classes
        },
    )
)
