"""What stages after `prune` change in the model that its budgets depend on: the activation for time, the vocabulary for bytes."""

from __future__ import annotations

from typing import Any

from ....models.checkpoints.folders import load_tokenizer
from ....models.dimensions import read_config
from ....models.families import FAMILIES
from ....spec.recipe import Recipe
from ....spec.stages import Prune, Vocabulary
from ...plan import Draft, Job, Node, Plan
from ..vocabulary import kept_of


def described_later(draft: Draft, stage: str, budget: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the cost of a model depends on in later stages, as JSON values, and hashes of what is read for it."""
    if budget == "latency":
        activation = _later_activation(draft.recipe, stage)
        return ({} if activation is None else {"activation": activation}), {}
    spec = next((each.spec for each in draft.recipe.stages if each.kind == "vocabulary" and each.is_enabled), None)
    if budget != "size_mb" or spec is None:
        return {}, {}
    text = {"text": draft.corpus.fingerprint} if spec.corpus is not False and draft.corpus is not None else {}
    return {"vocabulary": spec.model_dump(mode="json", include={"most", "min_count"})}, text


def set_later(job: Job[Prune], model: Any, config: Any) -> None:
    """Give `config`, a copy of the model's, the activation or vocabulary size that later stages will set."""
    if job.spec.budget == "latency":
        activation = _later_activation(job.plan.recipe, job.node.stage)
        if activation is not None:
            setattr(config, FAMILIES[config.model_type].own_name("hidden_act"), activation)
    elif job.spec.budget == "size_mb" and (later := later_vocabulary(job.plan)) is not None:
        folder = job.inputs["model"].path
        # A stage between may make another row the largest, which is kept too: then the file has one row more.
        config.vocab_size = len(kept_of(job, later.spec, model, load_tokenizer(folder), read_config(folder)))
        if config.pad_token_id is not None:
            config.pad_token_id = min(config.pad_token_id, config.vocab_size - 1)


def later_vocabulary(plan: Plan) -> Node[Vocabulary] | None:
    """Return the stage that reduces the vocabulary; it always comes after those that prune."""
    return next((node for node in plan.nodes if isinstance(node.spec, Vocabulary)), None)  # type: ignore[return-value]


def _later_activation(recipe: Recipe, stage: str) -> str | None:
    """Return the activation of the feed-forward layers, if a later stage changes it."""
    after = [each.id for each in recipe.stages].index(stage) + 1
    return next(
        (each.spec.activation for each in recipe.stages[after:] if each.is_enabled and each.spec.activation), None
    )
