"""Named features of a model on a batch, counted from 0 and, with a minus, from the end.

`logits`; `hidden[i]`, where 0 is the embedding output, also called `embeddings`, and -1 the last layer;
`scores[i]`, `weights[i]`, `queries[i]`, `keys[i]` and `values[i]` of the attention in layer i + 1; `pooled`, what the encoder's
pooler makes of [CLS]; `words`, the table of word embeddings. `losses.features` builds and parses the names.
"""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from ..errors import CompressError
from ..losses.features import ATTENTION, HIDDEN, LOGITS, POOLED, WORDS, Place, parse
from ..losses.tensors import same_document
from ..sessions.outputs import SPAN_LOGITS
from .attention import added, captured, headless_layers
from .dimensions import first_position
from .families import FAMILIES
from .heads import head_of
from .sentence_pooling import FIELD, pooling_of, sentence_vectors
from .vector_layers import layer_states, layer_weights

Features = dict[str, Tensor]
Batch = dict[str, Tensor]

_POOLED: Place = (POOLED, 0)


class _Enough(Exception):
    """Ends a forward once what goes into the first layer is there."""

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.inputs = arguments, keywords


def accepted_inputs(model: nn.Module) -> frozenset[str]:
    """Which of the tokenizer's outputs the model's forward takes."""
    parameters = inspect.signature(model.forward).parameters
    names = {"input_ids", "attention_mask"} & parameters.keys()
    config: Any = model.config
    types = getattr(config, "type_vocab_size", 0)
    segments = "token_type_ids" in parameters and FAMILIES[config.model_type].reads_segments(types)
    return frozenset(names | ({"token_type_ids"} if segments else set()))


def model_inputs(model: nn.Module, batch: Batch) -> Batch:
    """What the forward of `model` takes of `batch`.

    Where the batch has `documents` [batch, length], each is seen as it would be alone: its tokens attend to one another
    (a mask of four dimensions is used by transformers as it is; attention of a family's own adds it), and its positions
    begin anew. On a GPU such a mask is given for padding too, and none where the batch is `unpadded`: transformers would wait
    for the GPU to see whether there is any. Attention by a family's own code that takes no such mask is left to it, and so is a
    head that reads the mask: ModernBERT's mean of the tokens.
    """
    config: Any = model.config
    inputs = {name: batch[name] for name in accepted_inputs(model)}
    if "documents" in batch:
        first = first_position(config.model_type, config.pad_token_id)
        seen = same_document(batch["documents"])[:, None]
        inputs["attention_mask"] = _mask(config, seen)
        inputs["position_ids"] = first + _positions(batch["documents"])
    elif batch["attention_mask"].is_cuda and FAMILIES[config.model_type].captures_attention and not _keeps_mask(model):
        if "unpadded" in batch:
            del inputs["attention_mask"]
        elif getattr(config, "classifier_pooling", "cls") == "cls" or head_of(model).per_token or head_of(model).bare:
            mask = inputs["attention_mask"].bool()
            seen = mask[:, None, None].expand(-1, -1, mask.shape[1], -1)
            inputs["attention_mask"] = _mask(config, seen)
    return inputs


def _keeps_mask(model: Any) -> bool:
    """Whether a model for multiple choice needs the mask of tokens: its family attends by code of its own, or it takes their mean."""
    own = FAMILIES[model.config.model_type].own_attention is not None
    return head_of(model).pooled and (own or getattr(model.config, "classifier_pooling", "cls") != "cls")


def _mask(config: Any, seen: Tensor) -> Any:
    """The mask as the family takes it, where `seen` [batch, 1, query, key] says what is attended to."""
    family = FAMILIES[config.model_type]
    if family.own_attention:
        return added(seen)
    if not family.local_layers:
        return seen
    places = torch.arange(seen.shape[-1], device=seen.device)
    near = (places[:, None] - places).abs() <= config.sliding_window
    return {"full_attention": seen, "sliding_attention": seen & near}


def _positions(documents: Tensor) -> Tensor:
    """Of each token in its document, from 0: [batch, length]."""
    places = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    begins = documents.diff(dim=1, prepend=documents[:, :1]) != 0
    return places - (places * begins).cummax(dim=1).values


def compute_features(model: nn.Module, batch: Batch, wanted: Iterable[str]) -> Features:
    """The `wanted` features of `model`, with a head or without, on `batch`, and nothing that costs more than they need.

    Logits are as `logits_of` has them; hidden states [batch, length, hidden]; scores
    [batch, heads, query, key], before softmax and without the mask, with what the family adds for the distance of two tokens;
    weights [batch, heads, query, key], after both;
    queries, keys and values [batch, heads, length, head size]; pooled [batch, hidden]; words [vocabulary, embedding].
    Raises `CompressError` for a name that is not a feature of the model.
    """
    config: Any = model.config
    names = frozenset(wanted)
    places = _places(names - {WORDS}, config.num_hidden_layers)
    if not places:
        return _words(model, names)
    inputs = model_inputs(model, batch)
    whole = not isinstance(model, FSDPModule)  # where weights are split, every forward that begins has to end
    if whole and set(places.values()) == {(HIDDEN, 0)}:
        states: Tensor = first_layer_inputs(model, inputs)[0][0]
        states = states.transpose(0, 1) if FAMILIES[config.model_type].time_major else states
        return _words(model, names) | dict.fromkeys(places, states)
    inside = frozenset(place for place in places.values() if place[0] in ATTENTION)
    if inside and not FAMILIES[config.model_type].captures_attention:
        raise CompressError(f"unknown features {sorted(names)}: the attention of a {config.model_type} cannot be read")
    headless = headless_layers(config)
    if without := sorted(name for name, (kind, layer) in places.items() if kind in ATTENTION and layer in headless):
        raise CompressError(f"unknown features {without}: these layers of the pruned model have no heads")
    hidden = any(kind == HIDDEN for kind, _ in places.values())
    with captured(model, inside) as attention, _pooling(model, _POOLED in places.values()) as pooled:
        output = model(**inputs, output_hidden_states=hidden or len(layer_weights(config)) > 1)
    taken = attention if whole else _anchored(attention, output)
    if (LOGITS, 0) in places.values():
        taken = taken | {(LOGITS, 0): logits_of(model, output, batch["attention_mask"])}
    found = {name: _read(output, taken | pooled, place) for name, place in places.items()}
    return _words(model, names) | found


def _anchored(inside: dict[Place, Tensor], output: Any) -> dict[Place, Tensor]:
    """The same, but with a gradient that goes, at no weight, through what the layers give: that is where it gathers the
    layers' weights again."""
    nothing = output[0].flatten()[:0].sum()
    return {place: tensor + nothing for place, tensor in inside.items()}


def _words(model: Any, names: frozenset[str]) -> Features:
    """Of split weights they are there after a forward, until its backward."""
    return {WORDS: model.get_input_embeddings().weight} if WORDS in names else {}


def layers_of(model: Any) -> nn.ModuleList:
    """The encoder's layers, in order; of an ALBERT the groups that have weights of their own."""
    return next(module for module in model.base_model.modules() if isinstance(module, nn.ModuleList))


def first_layer_inputs(model: Any, inputs: Batch) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a forward on `inputs` passes to the first layer, by place, the embeddings first, and by name; no layer is run for it."""

    def stop(module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        raise _Enough(arguments, keywords)

    handle = layers_of(model)[0].register_forward_pre_hook(stop, with_kwargs=True)
    try:
        model(**inputs)
    except _Enough as found:
        return found.inputs
    finally:
        handle.remove()
    raise RuntimeError(f"{type(model).__name__} does not run its first layer")


@contextmanager
def _pooling(model: Any, wanted: bool) -> Iterator[dict[Place, Tensor]]:
    """While open, a forward leaves the pooler's output in the mapping that is given, if it is `wanted`.

    The encoder may be inside a model with a head, whose own output has none of it.
    """
    found: dict[Place, Tensor] = {}
    if not wanted:
        yield found
        return

    def keep(module: Any, arguments: Any, output: Any) -> None:
        if getattr(output, "pooler_output", None) is None:
            raise CompressError(f"unknown features ['pooled']: this {model.config.model_type} has no pooler")
        found[_POOLED] = output.pooler_output

    handle = model.base_model.register_forward_hook(keep)
    try:
        yield found
    finally:
        handle.remove()


def _places(names: frozenset[str], layers: int) -> dict[str, Place]:
    """Where each feature is: its kind, and its index from 0."""
    places = {name: found for name in names if (found := parse(name, layers)) is not None}
    if unknown := sorted(names - places.keys()):
        indexed = ", ".join(f"{kind}[i]" for kind in ATTENTION)
        raise CompressError(
            f"unknown features {unknown}; known: logits, embeddings, hidden[i] with i below {layers + 1}, "
            f"and {indexed} with i below {layers}; pooled, words"
        )
    return places


def _read(output: Any, inside: dict[Place, Tensor], place: Place) -> Tensor:
    kind, index = place
    if kind == HIDDEN:
        return output.hidden_states[index]
    return inside[place]


def logits_of(model: Any, output: Any, mask: Tensor) -> Tensor:
    """Of the `output` of a model of transformers: [batch, classes], of a head of tokens [batch, length, labels], of which a head that
    finds answers has two, start and end; of an encoder whose config says how they are made, vectors of texts [batch, hidden], by the
    `mask` of real tokens [batch, length]. CompressError: the model answers nothing."""
    if hasattr(output, SPAN_LOGITS[0]):
        return torch.stack([getattr(output, name) for name in SPAN_LOGITS], dim=-1)
    if getattr(output, "logits", None) is not None:
        return output.logits
    if not hasattr(model.config, FIELD):
        raise CompressError("unknown features ['logits']: the model has no head")
    return sentence_vectors(layer_states(model, output), mask, pooling_of(model))
