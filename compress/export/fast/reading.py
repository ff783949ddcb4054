"""transformers' classifiers -> their parts: one entry per family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import CompressError
from .parts import Array, Block, Encoder, Linear, Norm
from .writing import ACTIVATIONS


def read_encoder(model: Any) -> Encoder | None:
    """The parts of a transformers sequence classifier; None for a family or a variant that is not known here."""
    config = model.config.to_dict()
    return FAMILIES[config["model_type"]](model) if has_parts(config) else None


def has_parts(config: Mapping[str, Any]) -> bool:
    """Whether the parts can say what a classifier with this config.json is: a known family and activation, no relative
    positions, no decoder, one layer per group."""
    family = config["model_type"]
    activation = config.get("activation" if family == "distilbert" else "hidden_act") or "gelu"
    absolute = config.get("position_embedding_type") in (None, "absolute")
    plain = absolute and not config.get("is_decoder") and config.get("inner_group_num") in (None, 1)
    return family in FAMILIES and activation in ACTIVATIONS and plain


def check_parts(config: Mapping[str, Any], where: str) -> None:
    """Raises `CompressError`, which begins with `where`, for a classifier that has no fast graph."""
    if not has_parts(config):
        raise CompressError(
            f"{where}: the fast graph is for {', '.join(FAMILIES)} with absolute positions and a common "
            f"activation; this {config['model_type']} is another: export with graph: plain"
        )


def _array(tensor: Any) -> Array:
    return tensor.detach().float().cpu().numpy()


class _Reader:
    """Modules by path, as parts. The same path gives the same part."""

    def __init__(self, model: Any) -> None:
        self.model, self.config = model, model.config
        self.first: dict[Any, str] = {}  # module -> its first path: what shares a module shares its name

    def _module(self, path: str) -> tuple[str, Any]:
        module = self.model.get_submodule(path)
        return self.first.setdefault(module, path), module

    def linear(self, path: str) -> Linear:
        name, module = self._module(path)
        return Linear(name, _array(module.weight), None if module.bias is None else _array(module.bias))

    def norm(self, path: str) -> Norm:
        name, module = self._module(path)
        return Norm(name, _array(module.weight), _array(module.bias), float(module.eps))

    def table(self, path: str) -> Array:
        return _array(self.model.get_submodule(path).weight)

    def block(self, path: str, names: dict[str, str]) -> Block:
        parts = {part: f"{path}.{name}" for part, name in names.items()}
        made: dict[str, Any] = {
            part: self.norm(way) if part.endswith("norm") else self.linear(way) for part, way in parts.items()
        }
        return Block(**made)

    def encoder(
        self,
        prefix: str,
        blocks: list[Block],
        head: tuple[tuple[Linear, str | None], ...],
        *,
        activation: str,
        projection: Linear | None = None,
        skipped: int = 0,
    ) -> Encoder:
        """`skipped`: rows of the position table before that of the first token."""
        embeddings = f"{prefix}.embeddings"
        types = getattr(self.config, "type_vocab_size", 0)
        encoder = Encoder(
            words=self.table(f"{embeddings}.word_embeddings"),
            positions=self.table(f"{embeddings}.position_embeddings")[skipped:],
            types=self.table(f"{embeddings}.token_type_embeddings") if types else None,
            embedding_norm=self.norm(f"{embeddings}.LayerNorm"),
            projection=projection,
            blocks=tuple(blocks),
            heads=self.config.num_attention_heads,
            activation=activation,
            head=head,
            prefix=prefix,
        )
        return encoder.of_one_segment() if types == 1 else encoder


_BERT = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}
_DISTILBERT = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "output": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "norm": "output_layer_norm",
}
_ALBERT = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "up": "ffn",
    "down": "ffn_output",
    "norm": "full_layer_layer_norm",
}


def _layers(read: _Reader, prefix: str) -> list[Block]:
    count = read.config.num_hidden_layers
    return [read.block(f"{prefix}.encoder.layer.{number}", _BERT) for number in range(count)]


def _bert(model: Any) -> Encoder:
    read = _Reader(model)
    head = ((read.linear("bert.pooler.dense"), "tanh"), (read.linear("classifier"), None))
    return read.encoder("bert", _layers(read, "bert"), head, activation=model.config.hidden_act)


def _roberta(model: Any) -> Encoder:
    read, prefix = _Reader(model), model.base_model_prefix
    head = ((read.linear("classifier.dense"), "tanh"), (read.linear("classifier.out_proj"), None))
    skipped = model.config.pad_token_id + 1
    return read.encoder(prefix, _layers(read, prefix), head, activation=model.config.hidden_act, skipped=skipped)


def _electra(model: Any) -> Encoder:
    read, small = _Reader(model), model.config.embedding_size != model.config.hidden_size
    head = ((read.linear("classifier.dense"), "gelu"), (read.linear("classifier.out_proj"), None))
    projection = read.linear("electra.embeddings_project") if small else None
    activation = model.config.hidden_act
    return read.encoder("electra", _layers(read, "electra"), head, activation=activation, projection=projection)


def _distilbert(model: Any) -> Encoder:
    read = _Reader(model)
    count = model.config.num_hidden_layers
    blocks = [read.block(f"distilbert.transformer.layer.{number}", _DISTILBERT) for number in range(count)]
    head = ((read.linear("pre_classifier"), "relu"), (read.linear("classifier"), None))
    return read.encoder("distilbert", blocks, head, activation=model.config.activation)


def _albert(model: Any) -> Encoder:
    read, config = _Reader(model), model.config
    stem = "albert.encoder.albert_layer_groups.{}.albert_layers.0"
    count, groups = config.num_hidden_layers, config.num_hidden_groups
    own = [read.block(stem.format(group), _ALBERT) for group in range(groups)]
    blocks = [own[int(number / (count / groups))] for number in range(count)]
    head = ((read.linear("albert.pooler"), "tanh"), (read.linear("classifier"), None))
    projection = read.linear("albert.encoder.embedding_hidden_mapping_in")
    return read.encoder("albert", blocks, head, activation=config.hidden_act, projection=projection)


FAMILIES: dict[str, Callable[[Any], Encoder]] = {
    "bert": _bert,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
    "camembert": _roberta,
    "electra": _electra,
    "distilbert": _distilbert,
    "albert": _albert,
    "partial-albert": _albert,
}
