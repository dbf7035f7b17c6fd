"""SetFit as a baseline of `compare` and `fewshot`, on the same draws as all others.

    SETFIT_MODEL=FOLDER SUPERCONEXT_BASELINES=setfit=scripts/setfit_baseline.py:SetFit \\
        superconext fewshot TRAIN --test TEST --shots 16 --objectives setfit --out DIR

FOLDER has the weights of a sentence-transformers model. Settings are SetFit's own defaults: one
epoch over the pairs that it draws, then a logistic regression. Package: setfit.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from superconext.baselines.baseline import Baseline


class SetFit(Baseline):
    """Fine-tune a sentence transformer on pairs of rows, and fit a logistic regression to it."""

    seeded = True

    def fit(self, train: Any, dev: Any, seed: int = 0) -> SetFit:
        from datasets import Dataset
        from setfit import SetFitModel, Trainer, TrainingArguments

        self.model = SetFitModel.from_pretrained(os.environ["SETFIT_MODEL"])
        texts, labels = train
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder, seed=seed, save_strategy="no", report_to="none", use_amp=False
            )
            rows = Dataset.from_dict({"text": list(texts), "label": [str(y) for y in labels]})
            Trainer(model=self.model, args=arguments, train_dataset=rows).train()
        self.settings = {"model": os.path.basename(os.path.normpath(os.environ["SETFIT_MODEL"]))}
        return self

    def predict(self, texts: Any) -> Any:
        return [str(label) for label in self.model.predict(list(texts), use_labels=False)]
