"""Load a checkpoint and trace it with torch's dynamo exporter."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import onnx
import torch
from torch import Tensor, nn

from ..errors import CompressError
from ..models.checkpoints.pretrained import load_pretrained
from ..models.dimensions import read_config
from ..models.families import FAMILIES
from ..models.heads import HEADS, STATES, auto_class, without_pooler
from ..models.sentence_encoders.pooling import pooling_of, read_states, sentence_vectors, vector_fields
from ..models.sentence_encoders.vector_layers import layer_states
from ..spec.kinds import KindName
from .forms import FORMS

SEGMENTS = "token_type_ids"
INPUTS = ("input_ids", "attention_mask", SEGMENTS)
PREFIX = "traced"  # the attribute that holds the model: the first part of every traced name


@dataclass(frozen=True)
class Traced:
    """A model in eval mode, for tasks of `kind`, and the facts that its graph depends on."""

    model: Any
    kind: KindName
    inputs: tuple[str, ...]
    classes: int
    vocab_size: int
    pad_id: int
    max_length: int

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the graph's outputs; an encoder without a head also outputs the states that its vectors are computed from."""
        head = HEADS[self.kind]
        return (STATES, *head.outputs) if head.bare else head.outputs


Outputs = Tensor | tuple[Tensor, ...]  # a model's only output, or all of several


def _one_or_all(outputs: Sequence[Tensor]) -> Outputs:
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


class _AdditiveMask(nn.Module):
    """The model with its mask computed once: 0 for tokens, the lowest float for padding.

    transformers uses a ready [batch, 1, 1, length] mask as it is. From a [batch, length] mask it builds twenty nodes and a
    [batch, 1, length, length] tensor.
    """

    def __init__(self, model: nn.Module, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.traced, self._outputs = model, outputs

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Outputs:
        hidden = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return self._select_outputs(self.traced(input_ids=input_ids, attention_mask=hidden, **more), attention_mask)

    def _select_outputs(self, output: Any, mask: Tensor) -> Outputs:
        if STATES in self._outputs:
            states = layer_states(self.traced, output)
            return read_states(self.traced, states), sentence_vectors(states, mask, pooling_of(self.traced))
        return _one_or_all([getattr(output, name) for name in self._outputs])


class _OwnForm(nn.Module):
    """For a family that is traced in another form, whose logits have all outputs side by side."""

    def __init__(self, form: nn.Module, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.traced, self._several = form, len(outputs) > 1

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Outputs:
        output = self.traced(input_ids, attention_mask, token_type_ids)
        if isinstance(output, tuple):
            return output
        return _one_or_all(output.unbind(-1) if self._several else [output])


class _OwnMask(_AdditiveMask):
    """For a family that does not accept a ready mask."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Outputs:
        more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        output = self.traced(input_ids=input_ids, attention_mask=attention_mask, **more)
        return self._select_outputs(output, attention_mask)


def load(checkpoint: Path, kind: KindName) -> Traced:
    """Read a checkpoint folder: safetensors only, eager attention, fp32. CompressError names the file."""
    head = HEADS[kind]
    fields = vector_fields(checkpoint, read_config(checkpoint)) if head.bare else {}
    model, report = load_pretrained(auto_class(head), checkpoint, "a classifier", attention="eager", **fields)
    lacking = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    lacking = {name for name in lacking if not (head.bare and name.startswith(head.new))}
    if lacking:
        missing = ", ".join(sorted(lacking))
        raise CompressError(
            f"{checkpoint / 'model.safetensors'}: expected the weights {missing}; found none, or of other sizes: fine-tune it first"
        )
    return describe(without_pooler(model, head).eval(), kind)


def describe(model: Any, kind: KindName = "classification") -> Traced:
    config = model.config
    types, parameters = getattr(config, "type_vocab_size", 0), inspect.signature(model.forward).parameters
    segments = "token_type_ids" in parameters and FAMILIES[config.model_type].embeddings.reads_segments(types)
    return Traced(
        model=model,
        kind=kind,
        inputs=INPUTS if segments else INPUTS[:2],
        classes=_outputs_per_row(config, kind),
        vocab_size=config.vocab_size,
        pad_id=config.pad_token_id or 0,
        max_length=_max_length(model),
    )


def _outputs_per_row(config: Any, kind: KindName) -> int:
    """Return the width of a vector, 1 for an ending, or the number of labels."""
    if HEADS[kind].bare:
        return config.hidden_size
    return 1 if HEADS[kind].pooled else config.num_labels


def _max_length(model: Any) -> int:
    """Return the longest input. RoBERTa counts positions from padding_idx + 1, so its table has additional rows."""
    longest = FAMILIES[model.config.model_type].setting(model.config, "max_position_embeddings")
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return longest - module.padding_idx - 1
    return longest


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the exporter's notes on its internals and the loader's progress bar off the terminal."""
    from transformers.utils import logging as transformers_logging

    threshold, bars = logging.root.manager.disable, transformers_logging.is_progress_bar_enabled()
    logging.disable(logging.WARNING)
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(threshold)
        if bars:
            transformers_logging.enable_progress_bar()


def example(traced: Traced, batch: int, length: int) -> dict[str, Tensor]:
    """Random ids with ragged padding: row i loses a share of its end, the first row none."""
    generator = torch.Generator().manual_seed(batch * 100_003 + length)
    ids = torch.randint(0, traced.vocab_size, (batch, length), generator=generator)
    ids[ids == traced.pad_id] = (
        traced.pad_id + 1
    ) % traced.vocab_size  # texts contain none, and RoBERTa's positions depend on it
    kept = torch.tensor([max(1, length - (row * length) // batch) for row in range(batch)])
    mask = (torch.arange(length)[None] < kept[:, None]).long()
    types = torch.randint(0, 2, (batch, length), generator=generator) * mask
    full = {"input_ids": ids * mask + traced.pad_id * (1 - mask), "attention_mask": mask, "token_type_ids": types}
    return {name: full[name] for name in traced.inputs}


def side_by_side(outputs: Outputs) -> Tensor:
    """Return the logits as `models.features.named.logits_of` does; from states [batch, length, hidden] and vectors
    [batch, hidden], return the vectors."""
    if isinstance(outputs, Tensor):
        return outputs
    return outputs[-1] if outputs[0].ndim != outputs[-1].ndim else torch.stack(outputs, dim=-1)


def trace(traced: Traced, opset: int) -> onnx.ModelProto:
    """The exporter's graph of the model."""
    return write(traced, wrap(traced), opset)


def write(traced: Traced, module: nn.Module, opset: int) -> onnx.ModelProto:
    """Return the exporter's graph of `module`, which takes the same inputs as that of `wrap`."""
    inputs = examples(traced)
    try:
        with quiet(), torch.no_grad():
            program = torch.onnx.export(
                module,
                tuple(inputs.values()),
                dynamo=True,
                external_data=False,
                verbose=False,
                opset_version=opset,
                input_names=list(inputs),
                output_names=list(traced.outputs),
                dynamic_shapes=shapes(traced),
            )
    except Exception as error:  # the exporter wraps any error of a model's code
        reason = " ".join(str(error).split())[:300]
        raise CompressError(
            f"{type(traced.model).__name__}: torch's ONNX exporter cannot trace it: {reason}"
        ) from error
    return cast("torch.onnx.ONNXProgram", program).model_proto  # None is for `dynamo=False`


def examples(traced: Traced) -> dict[str, Tensor]:
    """Return inputs with two rows and several tokens: a size of 1 would be baked in."""
    return example(traced, 2, min(8, traced.max_length))


def shapes(traced: Traced) -> tuple[dict[int, Any], ...]:
    """Return the dynamic shapes of each input: batch and length."""
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=traced.max_length)
    return tuple({0: batch, 1: length} for _ in traced.inputs)


def wrap(traced: Traced) -> nn.Module:
    """Wrap the model so that its only outputs are its logits, or the last states and vectors.

    Use the form that its family is traced in, if any; else pass the ready mask, if that gives the model's own logits, or the
    model's own mask. A model with local layers keeps its own mask: a ready mask is the same for all layers, and short
    examples would not reveal the difference.
    """
    if traced.model.config.model_type in FORMS:
        return _OwnForm(FORMS[traced.model.config.model_type](traced.model), traced.outputs).eval()
    inputs = examples(traced)
    own, ready = (each(traced.model, traced.outputs).eval() for each in (_OwnMask, _AdditiveMask))
    if FAMILIES[traced.model.config.model_type].attention.local_layers:
        return own
    try:
        with quiet(), torch.no_grad():
            same = torch.allclose(side_by_side(ready(**inputs)), side_by_side(own(**inputs)), atol=1e-5)
    except (RuntimeError, ValueError, TypeError, IndexError):
        same = False
    return ready if same else own
