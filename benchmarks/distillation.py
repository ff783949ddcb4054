"""Compare the training speed of layer-wise distillation with the cost of its two models alone, interleaved.

    python benchmarks/distillation.py --teacher minilm-l6 --student tiny-3l-384

Times a step of the `intermediate` losses (embeddings, hidden states, attention scores), of the relations, and of soft targets alone. The
baseline is one teacher forward, and one student forward and backward with its optimizer step, without losses between layers. Batches have
32 texts of 48 to 64 random tokens; padding is not counted. Prints a Markdown table of medians.
"""

import argparse
import statistics
import time

import torch
from records import add_json, code_line, write_json
from torch import Tensor

from compress.errors import CompressError
from compress.losses.attention_mse import AttentionMse
from compress.losses.embedding_mse import EmbeddingMse
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_mse import HiddenMse
from compress.losses.relation_kl import RelationKl
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.models.cards import load_student
from compress.models.checkpoints.folders import load_classifier
from compress.models.features.named import compute_features
from compress.models.layer_maps import check_losses, layer_pairs
from compress.models.students import build_student, sample_tokens, student_dimensions
from compress.objective import Objective
from compress.pipeline.plan.teachers import resolve_teacher
from compress.results import Machine

LOSSES = {
    "floor: teacher forward + student step": (HardLabel(),),
    "soft targets": (SoftCrossEntropy(),),
    "layers": (EmbeddingMse(), HiddenMse(), AttentionMse()),
    "relations": (RelationKl(),),
}
FLOOR = next(iter(LOSSES))
WARMUP_ROUNDS = 2


def make_batch() -> dict[str, Tensor]:
    """Return a batch of 32 texts of 48 to 64 random tokens."""
    ids = torch.randint(1000, 30000, (32, 64))
    lengths = torch.randint(48, 65, (32, 1))
    lengths[0] = 64
    mask = (torch.arange(64)[None] < lengths).long()
    labels = torch.randint(0, 2, (32,))
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids), "labels": labels}


class Pair:
    """A teacher, its student, and a training step for each set of losses that fits them."""

    def __init__(self, teacher: str, student: str) -> None:
        source, card = resolve_teacher(teacher), load_student(student)
        if source.folder is None or sample_tokens(card):
            raise SystemExit("expected a teacher with a checkpoint, and a student that needs no text to start from")
        sizes = source.dimensions(2)
        small = student_dimensions(card, sizes)
        self.teacher = (
            load_classifier(source.folder, kind="classification", labels=("a", "b"), trained=False)
            .eval()
            .requires_grad_(False)
        )
        self.student = build_student(card, self.teacher, small).train().requires_grad_(True)
        self.steps: dict[str, tuple[Objective, torch.optim.Optimizer]] = {}
        for name, losses in LOSSES.items():
            try:
                check_losses(losses, student=small, teacher=sizes, where=name)
            except CompressError as problem:
                print(f"left out: {problem}")
                continue
            pairs = layer_pairs("uniform", student_layers=small.layers, teacher_layers=sizes.layers)
            objective = Objective(losses, layers=pairs, widths=(small.hidden, sizes.hidden))
            parameters = [*self.student.parameters(), *objective.parameters()]
            self.steps[name] = (objective, torch.optim.AdamW(parameters, lr=0.0, fused=True))

    def step(self, name: str, batch: dict[str, Tensor]) -> float:
        """Run one step and return its seconds."""
        objective, optimizer = self.steps[name]
        started = time.perf_counter()
        with torch.no_grad():
            targets = compute_features(self.teacher, batch, objective.teacher_features or {"logits"})
        features = compute_features(self.student, batch, objective.student_features)
        torch.stack(list(objective(features, targets, batch).values())).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="minilm-l6")
    parser.add_argument("--student", default="tiny-3l-384")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    add_json(parser)
    arguments = parser.parse_args()
    if arguments.rounds <= WARMUP_ROUNDS:
        parser.error(f"--rounds: expected more than {WARMUP_ROUNDS}, the first of which do not count")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    pair, batch = Pair(arguments.teacher, arguments.student), make_batch()
    rounds = [{name: pair.step(name, batch) for name in pair.steps} for _ in range(arguments.rounds)]
    counted = rounds[WARMUP_ROUNDS:]
    medians = {name: statistics.median(seconds[name] for seconds in counted) for name in pair.steps}
    tokens = int(batch["attention_mask"].sum())
    write_json(arguments.json, {"tokens": tokens, "seconds": counted})
    print(
        f"{Machine.here().cpu}, {arguments.threads} thread(s), {arguments.teacher} -> {arguments.student}\n\n{code_line()}\n"
    )
    print("| step | tokens/s | of the floor |\n| :-- | --: | --: |")
    for name, median in medians.items():
        print(f"| {name} | {tokens / median:,.0f} | {medians[FLOOR] / median:.2f} |")


if __name__ == "__main__":
    main()
