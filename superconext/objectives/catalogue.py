"""The registry of objectives: where each class lives, and a line of help on it.

The registry imports no objective, so the command line lists their names without torch. A run
folder holds an objective's name alone and never says which file to run, so nothing that the folder
holds can start code. A run trained with an objective that is not registered predicts all the same;
the objective's own rule is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superconext.core.registry import Entry, Registry

if TYPE_CHECKING:
    from superconext.objectives.base import Objective

_BUILT_IN = {
    "superloss": ("superloss:SuperLoss", "fully supervised contrastive loss"),
    "cross_entropy": ("cross_entropy:CrossEntropy", "linear softmax classifier"),
    "ce_ce": ("cross_entropy:CECE", "cross-entropy + cross-entropy on unit vectors, scaled"),
    "triplet": ("triplet:Triplet", "triplet margin loss, batch-hard by default"),
    "n_pair": ("supcon:NPair", "one positive against one row of each other class"),
    "supcon": ("supcon:SupCon", "supervised contrastive loss of Khosla et al."),
    "ce_scl": ("cross_entropy:CESCL", "cross-entropy + supervised contrastive loss"),
    "ce_cl": ("cross_entropy:CECL", "cross-entropy + contrast of two dropout views"),
    "lacon": ("lacon:LaCon", "contrastive loss of sentences and label embeddings"),
    "leam": ("leam:LEAM", "tokens weighted by their likeness to label embeddings"),
    "lsan": ("leam:LSAN", "a sentence vector for each class, by attention"),
    "css_lm": ("css_lm:CSSLM", "semi-supervised, with retrieved unlabelled text"),
    "scf": ("css_lm:SCF", "CSS-LM on labelled text alone"),
    "css_lm_st": ("css_lm:CSSLMST", "CSS-LM's retrieval with pseudo labels"),
    "dualcl": ("dualcl:DualCL", "dual contrast of texts and classifiers of label tokens"),
    "dualcl_no_dual": ("dualcl:DualCLNoDual", "DualCL without its contrastive terms"),
}

#: All objectives by name: the built-in ones, those of `register`, those of installed packages
#: (entry points of the group `superconext.objectives`) and those that the environment variable
#: SUPERCONEXT_OBJECTIVES names as "name=path/to/file.py:Class" (several after commas).
OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    "superconext.objectives.base:Objective",
    {
        name: Entry(f"superconext.objectives.{target}", summary)
        for name, (target, summary) in _BUILT_IN.items()
    },
    "SUPERCONEXT_OBJECTIVES",
    home=__name__,
)


def register(name: str, module: str, cls: str, summary: str) -> None:
    """Add an objective of your own to the registry, for this process.

    Args:
        name: what `objective` will call it; registering a name again replaces it.
        module: where the class is: a module's dotted name (`__name__` in its own file), or
            the path of a .py file. It is imported when the objective is first used.
        cls: name of the class, a subclass of `objectives.base.Objective`; summary: a line of help.

    Raises ConfigError for a name that is no identifier or belongs to a built-in objective.

    >>> register("centres", "my_losses.py", "Centres", "distance to the centre of the class")
    >>> "centres" in OBJECTIVES
    True
    """
    OBJECTIVES.register(name, f"{module}:{cls}", summary)


def objective_class(name: str) -> type[Objective]:
    """The class behind a name. Imports torch.

    Raises ConfigError for an unknown name, and for a registered one without its class.
    """
    return OBJECTIVES.get(name)
