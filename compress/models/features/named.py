"""Named features of a model on a batch; indices start at 0, negative ones count from the end.

`logits`; `hidden[i]`, where 0 is the embedding output, also called `embeddings`, and -1 the last layer; `scores[i]`, `weights[i]`,
`queries[i]`, `keys[i]` and `values[i]` of the attention in layer i + 1; `pooled`, the output of the encoder's pooler; `words`, the word
embedding table. `losses.features` builds and parses the names.
"""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from ...errors import CompressError
from ...losses.features import ATTENTION, HIDDEN, LOGITS, POOLED, WORDS, FeatureKey, parse
from ...losses.tensors import same_document
from ...sessions.outputs import SPAN_LOGITS
from ..dimensions import first_position
from ..families import FAMILIES
from ..heads import head_of
from ..sentence_encoders.pooling import FIELD, pooling_of, sentence_vectors
from ..sentence_encoders.vector_layers import layer_states, layer_weights
from .attention import additive_mask, capture_tensors, headless_layers

Features = dict[str, Tensor]
Batch = dict[str, Tensor]

_POOLED: FeatureKey = (POOLED, 0)


class _Enough(Exception):
    """Stops a forward once the inputs of the first layer are known."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.inputs = arguments, keywords


def accepted_inputs(model: nn.Module) -> frozenset[str]:
    """Return which of the tokenizer's outputs the model's forward takes."""
    parameters = inspect.signature(model.forward).parameters
    names = {"input_ids", "attention_mask"} & parameters.keys()
    config: Any = model.config
    types = getattr(config, "type_vocab_size", 0)
    segments = "token_type_ids" in parameters and FAMILIES[config.model_type].embeddings.reads_segments(types)
    return frozenset(names | ({"token_type_ids"} if segments else set()))


def model_inputs(model: nn.Module, batch: Batch) -> Batch:
    """Return the keyword arguments for the forward of `model` on `batch`.

    If the batch has `documents` [batch, length], each document is processed as if alone: its tokens attend only to each other (transformers
    uses a 4-D mask as it is; a family's own attention adds it), and its positions start anew. On a GPU, padding gets such a mask too, and
    an `unpadded` batch none, because transformers would wait for the GPU to see if there is padding. The 2-D mask stays for attention by a
    family's own code that takes no 4-D mask, and for a head that reads it, such as ModernBERT's mean of the tokens.
    """
    config: Any = model.config
    inputs = {name: batch[name] for name in accepted_inputs(model)}
    if "documents" in batch:
        first = first_position(config.model_type, config.pad_token_id)
        seen = same_document(batch["documents"])[:, None]
        inputs["attention_mask"] = _mask(config, seen)
        inputs["position_ids"] = first + _positions(batch["documents"])
    elif batch["attention_mask"].is_cuda and FAMILIES[config.model_type].attention.readable and not _keeps_mask(model):
        if "unpadded" in batch:
            del inputs["attention_mask"]
        elif getattr(config, "classifier_pooling", "cls") == "cls" or head_of(model).per_token or head_of(model).bare:
            mask = inputs["attention_mask"].bool()
            seen = mask[:, None, None].expand(-1, -1, mask.shape[1], -1)
            inputs["attention_mask"] = _mask(config, seen)
    return inputs


def _keeps_mask(model: Any) -> bool:
    """Whether a multiple-choice model needs the 2-D mask: its family has its own attention code, or its head takes the mean of the
    tokens."""
    own = FAMILIES[model.config.model_type].attention.own_module is not None
    return head_of(model).pooled and (own or getattr(model.config, "classifier_pooling", "cls") != "cls")


def _mask(config: Any, seen: Tensor) -> Any:
    """Return the mask in the family's form; `seen` [batch, 1, query, key]: True to attend."""
    family = FAMILIES[config.model_type]
    if family.attention.own_module:
        return additive_mask(seen)
    if not family.attention.local_layers:
        return seen
    places = torch.arange(seen.shape[-1], device=seen.device)
    near = (places[:, None] - places).abs() <= config.sliding_window
    return {"full_attention": seen, "sliding_attention": seen & near}


def _positions(documents: Tensor) -> Tensor:
    """Return each token's position in its document, from 0: [batch, length]."""
    places = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    begins = documents.diff(dim=1, prepend=documents[:, :1]) != 0
    return places - (places * begins).cummax(dim=1).values


def compute_features(model: nn.Module, batch: Batch, wanted: Iterable[str]) -> Features:
    """Return the `wanted` features of `model`, with or without a head, on `batch`, computing no more than they need.

    Logits are as in `logits_of`; hidden states [batch, length, hidden]; scores [batch, heads, query, key], before softmax and without the
    mask, with the family's relative position bias; weights [batch, heads, query, key], after mask and softmax; queries, keys and values
    [batch, heads, length, head size]; pooled [batch, hidden]; words [vocabulary, embedding]. Raises `CompressError` for a name that is not
    a feature of the model.
    """
    config: Any = model.config
    names = frozenset(wanted)
    requested = _feature_keys(names - {WORDS}, config.num_hidden_layers)
    if not requested:
        return _word_table(model, names)
    inputs = model_inputs(model, batch)
    may_stop_early = not isinstance(model, FSDPModule)  # with sharded weights, every forward has to finish
    if may_stop_early and set(requested.values()) == {(HIDDEN, 0)}:
        states: Tensor = first_layer_inputs(model, inputs)[0][0]
        states = states.transpose(0, 1) if FAMILIES[config.model_type].layers.time_major else states
        return _word_table(model, names) | dict.fromkeys(requested, states)
    attention_keys = frozenset(key for key in requested.values() if key[0] in ATTENTION)
    if attention_keys and not FAMILIES[config.model_type].attention.readable:
        raise CompressError(f"unknown features {sorted(names)}: the attention of a {config.model_type} cannot be read")
    headless = headless_layers(config)
    if lacking_heads := sorted(
        name for name, (kind, layer) in requested.items() if kind in ATTENTION and layer in headless
    ):
        raise CompressError(f"unknown features {lacking_heads}: these layers of the pruned model have no heads")
    hidden = any(kind == HIDDEN for kind, _ in requested.values())
    with capture_tensors(model, attention_keys) as attention, _pooling(model, _POOLED in requested.values()) as pooled:
        output = model(**inputs, output_hidden_states=hidden or len(layer_weights(config)) > 1)
    captured = attention if may_stop_early else _anchor_to_output(attention, output)
    if (LOGITS, 0) in requested.values():
        captured = captured | {(LOGITS, 0): logits_of(model, output, batch["attention_mask"])}
    features = {name: _read(output, captured | pooled, key) for name, key in requested.items()}
    return _word_table(model, names) | features


def _anchor_to_output(captured: dict[FeatureKey, Tensor], output: Any) -> dict[FeatureKey, Tensor]:
    """Return the same tensors with a gradient path, at weight 0, through the layers' output: that path gathers the sharded weights
    again."""
    zero = output[0].flatten()[:0].sum()
    return {key: tensor + zero for key, tensor in captured.items()}


def _word_table(model: Any, names: frozenset[str]) -> Features:
    """Return the word table if wanted. If weights are sharded, it is available between a forward and its backward."""
    return {WORDS: model.get_input_embeddings().weight} if WORDS in names else {}


def layers_of(model: Any) -> nn.ModuleList:
    """Return the encoder's layers, in order; for an ALBERT, the groups with weights of their own."""
    return next(module for module in model.base_model.modules() if isinstance(module, nn.ModuleList))


def first_layer_inputs(model: Any, inputs: Batch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional arguments, the embeddings first, and keyword arguments that a forward on `inputs` passes to the first layer,
    without running any layer."""

    def stop(module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        raise _Enough(arguments, keywords)

    handle = layers_of(model)[0].register_forward_pre_hook(stop, with_kwargs=True)
    try:
        model(**inputs)
    except _Enough as stopped:
        return stopped.inputs
    finally:
        handle.remove()
    raise RuntimeError(f"{type(model).__name__} does not run its first layer")


@contextmanager
def _pooling(model: Any, wanted: bool) -> Iterator[dict[FeatureKey, Tensor]]:
    """Record the pooler's output of a forward in the yielded mapping, if `wanted`.

    The encoder may be inside a model with a head, whose own output lacks it.
    """
    tensors: dict[FeatureKey, Tensor] = {}
    if not wanted:
        yield tensors
        return

    def keep(module: Any, arguments: Any, output: Any) -> None:
        if getattr(output, "pooler_output", None) is None:
            raise CompressError(f"unknown features ['pooled']: this {model.config.model_type} has no pooler")
        tensors[_POOLED] = output.pooler_output

    handle = model.base_model.register_forward_hook(keep)
    try:
        yield tensors
    finally:
        handle.remove()


def _feature_keys(names: frozenset[str], layers: int) -> dict[str, FeatureKey]:
    """Return the key of each feature: its kind, and its layer from 0."""
    feature_keys = {name: key for name in names if (key := parse(name, layers)) is not None}
    if unknown := sorted(names - feature_keys.keys()):
        indexed = ", ".join(f"{kind}[i]" for kind in ATTENTION)
        raise CompressError(
            f"unknown features {unknown}; known: logits, embeddings, hidden[i] with i below {layers + 1}, "
            f"and {indexed} with i below {layers}; pooled, words"
        )
    return feature_keys


def _read(output: Any, captured: dict[FeatureKey, Tensor], key: FeatureKey) -> Tensor:
    kind, index = key
    if kind == HIDDEN:
        return output.hidden_states[index]
    return captured[key]


def logits_of(model: Any, output: Any, mask: Tensor) -> Tensor:
    """Return the logits in the `output` of a transformers model: [batch, classes]; [batch, length, labels] from a head per token, where
    question answering has two labels, start and end; for an encoder whose config says how text vectors are made, these vectors [batch,
    hidden], using `mask` [batch, length] of real tokens. Raises `CompressError` if the model has no such output."""
    if hasattr(output, SPAN_LOGITS[0]):
        return torch.stack([getattr(output, name) for name in SPAN_LOGITS], dim=-1)
    if getattr(output, "logits", None) is not None:
        return output.logits
    if not hasattr(model.config, FIELD):
        raise CompressError("unknown features ['logits']: the model has no head")
    return sentence_vectors(layer_states(model, output), mask, pooling_of(model))
