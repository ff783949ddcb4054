"""Published ablations that a report shows next to ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Scores in points, by the label of the row that measures the same here. `what`: the models and data of the paper."""

    source: str
    what: str
    full: float
    rows: dict[str, float]

    def difference(self, label: str) -> float | None:
        """Return points relative to the full recipe; None if the paper has no such row."""
        return None if label not in self.rows else round(self.rows[label] - self.full, 2)


# Jiao et al. 2020, §4.4. Its row without the task stage (68.5) is compared with ours without the task's distillation.
TINYBERT = Published(
    source="arXiv:1909.10351",
    what="BERT-base as the teacher, a student of 4 layers × 312, dev average over the paper's own tasks",
    full=75.6,
    rows={
        "without general": 72.5,
        "without augment": 68.4,
        "without embedding_mse": 74.1,
        "without hidden_mse": 72.9,
        "without attention_mse": 71.0,
        "without hidden_mse and attention_mse": 56.3,
        "without soft_cross_entropy": 73.5,
        "without intermediate and soft_cross_entropy": 68.5,
        "map top": 70.9,
        "map bottom": 71.3,
    },
)
PUBLISHED = {TINYBERT.source: TINYBERT}


def published_of(paper: str | None) -> Published | None:
    """Return the published ablation of a recipe's paper (`arXiv:1909.10351`, or an address with that ending)."""
    number = (paper or "").removeprefix("arXiv:").rstrip("/").rpartition("/")[2]
    return PUBLISHED.get(f"arXiv:{number}")
