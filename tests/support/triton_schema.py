"""The part of Triton's `ModelConfig` that `compress ship --triton` writes, with the field numbers of its published
model_config.proto.

Parsing fails on any other field, an unknown enum value, or a number where a string belongs.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_KINDS = {"string": 9, "int32": 5, "int64": 3, "message": 11, "enum": 14}
_ENUMS = {
    "DataType": {"TYPE_INVALID": 0, "TYPE_INT32": 8, "TYPE_INT64": 9, "TYPE_FP16": 10, "TYPE_FP32": 11},
    "ModelInstanceGroup.Kind": {"KIND_AUTO": 0, "KIND_GPU": 1, "KIND_CPU": 2, "KIND_MODEL": 3},
}
# Message -> field -> (number, type); `*` before a type means repeated.
_MESSAGES = {
    "ModelInput": {"name": (1, "string"), "data_type": (2, "DataType"), "dims": (4, "*int64")},
    "ModelOutput": {
        "name": (1, "string"),
        "data_type": (2, "DataType"),
        "dims": (3, "*int64"),
        "label_filename": (4, "string"),
    },
    "ModelInstanceGroup": {"kind": (4, "ModelInstanceGroup.Kind"), "count": (2, "int32")},
    "ModelDynamicBatching": {},
    "ModelParameter": {"string_value": (1, "string")},
    "ModelConfig.ParametersEntry": {"key": (1, "string"), "value": (2, "ModelParameter")},
    "ModelConfig": {
        "name": (1, "string"),
        "backend": (17, "string"),
        "max_batch_size": (4, "int32"),
        "input": (5, "*ModelInput"),
        "output": (6, "*ModelOutput"),
        "instance_group": (7, "*ModelInstanceGroup"),
        "dynamic_batching": (11, "ModelDynamicBatching"),
        "parameters": (14, "*ModelConfig.ParametersEntry"),
    },
}


def model_config() -> Any:
    """Return an empty `ModelConfig`."""
    file = descriptor_pb2.FileDescriptorProto(name="model_config.proto", package="inference", syntax="proto3")
    messages: dict[str, descriptor_pb2.DescriptorProto] = {}
    for name in sorted(_MESSAGES, key=lambda name: name.count(".")):
        outer, _, inner = name.rpartition(".")
        messages[name] = messages[outer].nested_type.add(name=inner) if outer else file.message_type.add(name=name)
        for field, (number, kind) in _MESSAGES[name].items():
            _add_field(messages[name], field, number, kind)
    messages["ModelConfig.ParametersEntry"].options.map_entry = True
    for name, values in _ENUMS.items():
        outer, _, inner = name.rpartition(".")
        enum = messages[outer].enum_type.add(name=inner) if outer else file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))()


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str) -> None:
    plain = kind.removeprefix("*")
    known = "message" if plain in _MESSAGES else "enum" if plain in _ENUMS else plain
    field = message.field.add(name=name, number=number, type=_KINDS[known], label=3 if kind != plain else 1)  # type: ignore[arg-type]
    if known != plain:
        field.type_name = f".inference.{plain}"
