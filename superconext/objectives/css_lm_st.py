"""CSS-LM-ST: CSS-LM's retrieval, but self-training on pseudo labels instead of L_CSS."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch
from superconext.objectives.css_lm import CSSLM
from superconext.objectives.css_retrieval import RetrievalOptions, Retrieved
from superconext.objectives.css_terms import Labelled

PSEUDO = ("query", "classifier")


@dataclass(frozen=True)
class Options(RetrievalOptions):
    """pseudo: whose label a retrieved row gets. confidence: what the classifier's needs."""

    pseudo: str = "query"
    confidence: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pseudo not in PSEUDO:
            raise ConfigError(
                f"options: pseudo = {self.pseudo!r}; expected one of {', '.join(PSEUDO)}"
            )
        if not 0 <= self.confidence < 1:
            raise ConfigError(
                f"options: confidence = {self.confidence:g}; expected at least 0 and below 1"
            )


class CSSLMST(CSSLM):
    """Cross-entropy on labelled rows and on retrieved ones, whose labels are made up.

    Everything but the third loss as in CSSLM::

        L    = L_CE + L_ST + weight (L_D + L_C)
        L_ST = mean over i and j in P(i) of -log p(y_i | x_j)         pseudo=query
             = mean over j in any P(i) of  -log p(yhat_j | x_j)       pseudo=classifier
               yhat_j = argmax p(. | x_j), of the rows where max p > `confidence`

    The paper names pseudo-labelling without saying whose label it is; its code gives a
    retrieved row the label of the row that found it. Pseudo-labelling proper takes the
    classifier's. `form=faithful` keeps sums. The paper drops nothing here on a dev score.

    Sources: Su et al. (2021, CSS-LM), section 4.3; Lee (2013) for pseudo=classifier.
    """

    options_type: type = Options
    options: Options

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]` and `batch.pool`.

        Scalars: each loss, accuracy, similarities, how many pool rows were encoded and the
        share of retrieved positives with a pseudo label. Raises TrainingError without a pool.
        """
        vectors = self.spaces(batch.sentence)
        total, scalars = self.classified(vectors, batch)
        found, pool = self.retrieved(vectors, batch, own_sets=True)
        labelled = Labelled.of(batch.labels, batch.ids, self.form)
        for name, loss in self.level_losses(vectors, pool, labelled, found).items():
            total = total + self.weight * loss
            scalars[name] = float(loss.detach())
        if len(found.rows):
            loss, used = self._self_training(self.scores(pool), found, batch.labels)
            total = total + loss
            scalars["pseudo_cross_entropy"], scalars["pseudo_share"] = float(loss.detach()), used
        scalars["pool_rows"] = float(len(found.rows))
        return total, scalars

    def _self_training(
        self, scores: Tensor, found: Retrieved, labels: Tensor
    ) -> tuple[Tensor, float]:
        """L_ST from scores of the pool rows `[R, C]`, and the share of rows it uses."""
        log_p = functional.log_softmax(scores, dim=1)
        if self.options.pseudo == "query":
            # How often rows of each class found each pool row, [R, C].
            of_class = functional.one_hot(labels, scores.shape[1]).to(log_p.dtype)
            weights = found.positives.T.to(log_p.dtype) @ of_class
            share = 1.0
        else:
            best, chosen = log_p.detach().max(dim=1)
            of_any = found.positives.any(dim=0)
            kept = of_any & (best.exp() > self.options.confidence)
            weights = torch.zeros_like(log_p)
            weights[kept, chosen[kept]] = 1.0
            share = float(kept.sum()) / max(int(of_any.sum()), 1)
        loss = -(weights * log_p).sum()
        if self.form == "faithful":
            return loss, share
        return loss / weights.sum().clamp(min=1), share
