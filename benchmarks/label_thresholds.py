"""Test whether per-label thresholds improve F1 on held-out texts, with simulated labels and outputs and small tuning splits.

    python benchmarks/label_thresholds.py --draws 60

Simulates eight labels of different frequency: each label's logits are normal, and labels are drawn from them. A model's outputs are these
logits plus noise; `offset` shifts labels by different amounts, as a miscalibrated model would. Prints the gain over one threshold for all
labels, in points of micro and macro F1 on 8,000 other texts, with standard errors over draws: for each label's best F1 alone, for its
average with the shared threshold, and for `label_thresholds`, which training uses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from records import add_json, code_line, write_json

from compress.metrics import LabelsHeadline
from compress.tasks.label_thresholds import label_thresholds, own_thresholds, shared_threshold

OFFSETS, TEXTS = (0.0, 0.25, 0.5, 1.0), (100, 300, 1000, 3000)
BOTH = LabelsHeadline(("f1_micro", "f1_macro"))
EACH = (LabelsHeadline(("f1_micro",)), LabelsHeadline(("f1_macro",)))
RULES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "best F1": lambda outputs, gold: own_thresholds(outputs, gold, shared_threshold(outputs, gold, BOTH), prior=0),
    "averaged": lambda outputs, gold: own_thresholds(outputs, gold, shared_threshold(outputs, gold, BOTH)),
    "chosen": lambda outputs, gold: label_thresholds(outputs, gold, BOTH),
}
_LABELS, _HELD_OUT = 8, 8000


def gains(texts: int, offset: float, draws: int, seed: int) -> np.ndarray:
    """Return float64 [draw, rule, micro and macro]: points over the shared threshold. `texts`: size of the tuning split."""
    return np.array([_gain(texts, offset, np.random.default_rng([seed, draw])) for draw in range(draws)])


def _gain(texts: int, offset: float, rng: np.random.Generator) -> np.ndarray:
    means, widths = rng.uniform(-6, -0.5, _LABELS), rng.uniform(1.5, 3.5, _LABELS)
    offsets = offset * rng.normal(size=_LABELS)
    logits = means + widths * rng.normal(size=(texts + _HELD_OUT, _LABELS))
    gold = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.uint8)
    outputs = 0.9 * logits + offsets + 0.5 * rng.normal(size=logits.shape)
    tuning, held_out = (outputs[:texts], gold[:texts]), (outputs[texts:], gold[texts:])
    base = _scores(*held_out, np.array(shared_threshold(*tuning, BOTH)))
    return np.array([_scores(*held_out, rule(*tuning)) - base for rule in RULES.values()])


def _scores(outputs: np.ndarray, gold: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    return np.array([headline(outputs - thresholds, gold) for headline in EACH])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    add_json(parser)
    options = parser.parse_args()
    print(f"{code_line()}\n")
    measured = []
    print("| Offset | Tuning texts | " + " | ".join(f"{rule}: micro | macro" for rule in RULES) + " |")
    print("|-|-|" + "-|-|" * len(RULES))
    for offset in OFFSETS:
        for texts in TEXTS:
            gained = gains(texts, offset, options.draws, options.seed)
            measured.append({"offset": offset, "texts": texts, "gained": gained.tolist()})
            means, errors = gained.mean(axis=0), gained.std(axis=0, ddof=1) / len(gained) ** 0.5
            cells = (f"{mean:+.2f} ± {error:.2f}" for mean, error in zip(means.flat, errors.flat, strict=True))
            print(f"| {offset:g} | {texts:,} | {' | '.join(cells)} |", flush=True)
    write_json(options.json, {"rules": list(RULES), "scores": ["f1_micro", "f1_macro"], "rows": measured})


if __name__ == "__main__":
    main()
