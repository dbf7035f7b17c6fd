"""Baselines that systems are compared with, and their registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from superconext.core.registry import Entry, Registry

if TYPE_CHECKING:
    from superconext.baselines.baseline import Baseline

#: The baselines by name. The first three are fitted in every comparison, the controls wherever
#: a run has what they read; the others, and those of contributors, where they are named among
#: the systems.
BASELINES: Registry[type[Baseline]] = Registry(
    "baseline",
    "superconext.baselines.baseline:Baseline",
    {
        "majority": Entry("superconext.baselines.baseline:Majority", "the commonest label"),
        "tfidf_logreg": Entry(
            "superconext.baselines.linear:TfidfLogisticRegression", "TF-IDF, logistic regression"
        ),
        "tfidf_svm": Entry("superconext.baselines.linear:TfidfSvm", "TF-IDF, linear SVM"),
        "nbsvm": Entry("superconext.baselines.linear:NbSvm", "naive Bayes features, linear SVM"),
        "fasttext": Entry("superconext.baselines.linear:FastText", "fastText's classifier"),
        "ngrams": Entry(
            "superconext.baselines.linear:NgramPool", "TF-IDF and log-count ratios, pooled"
        ),
        "vectors_logreg": Entry(
            "superconext.fitting.controls:VectorsLogisticRegression",
            "mean word vectors, logistic regression",
        ),
        "plain_vectors_logreg": Entry(
            "superconext.fitting.controls:PlainVectorsLogisticRegression",
            "mean word vectors without emoji scores, logistic regression",
        ),
        "pretrained_logreg": Entry(
            "superconext.fitting.controls:PretrainedLogisticRegression",
            "frozen pretrained encoder, logistic regression",
        ),
        "vectors_mteb": Entry(
            "superconext.fitting.controls:VectorsBenchmark",
            "mean word vectors, MTEB's logistic regression",
        ),
        "pretrained_mteb": Entry(
            "superconext.fitting.controls:PretrainedBenchmark",
            "frozen pretrained encoder, MTEB's logistic regression",
        ),
    },
    "SUPERCONEXT_BASELINES",
    home=__name__,
)

#: Fitted beside the systems on every split, in this order.
ALWAYS_FITTED = ("majority", "tfidf_logreg", "tfidf_svm")

#: Fitted on what a run starts from, its word vectors and its pretrained encoder, wherever it has
#: them: what the training of the encoder adds is the difference to these.
CONTROLS = ("vectors_logreg", "pretrained_logreg")
