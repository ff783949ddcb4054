"""The fuzzers' damage is deterministic, is real damage, and does not modify its input."""

from __future__ import annotations

import json

import mutations

DOCUMENT = {"name": "x", "sizes": [1, 2, 3], "deep": {"rate": 0.1, "on": True, "labels": {"0": "no", "1": "yes"}}}


def written(document: object) -> str:
    return json.dumps(document)


def test_documents_are_damaged_reproducibly_and_json_can_write_them():
    before = written(DOCUMENT)
    cases = [(said, written(changed)) for said, changed in mutations.documents(DOCUMENT, 1, 1000)]
    assert written(DOCUMENT) == before
    assert cases == [(said, written(changed)) for said, changed in mutations.documents(DOCUMENT, 1, 1000)]
    assert cases[:10] != [(said, written(changed)) for said, changed in mutations.documents(DOCUMENT, 2, 10)]
    assert sum(changed != before for _, changed in cases) > 900
    assert {type(json.loads(changed)) for _, changed in cases} >= {dict, list, str, int}
    assert len({changed for _, changed in cases}) > 600


def test_documents_that_are_no_tables_are_damaged_too():
    for document in (None, 1, "x", [], {}, [[1]], {"a": []}):
        assert len([written(changed) for _, changed in mutations.documents(document, 1, 200)]) == 200


def test_bytes_are_damaged_reproducibly():
    data = written(DOCUMENT).encode()
    cases = list(mutations.bytes_(data, 1, 500))
    assert cases == list(mutations.bytes_(data, 1, 500))
    assert sum(changed != data for _, changed in cases) > 450
    assert {said.split(": ")[1] for said, _ in cases} >= {"truncate", "flip", "double", "swap_number"}
    assert len(list(mutations.bytes_(b"", 1, 200))) == 200
