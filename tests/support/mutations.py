"""Seeded damage to documents and to bytes, with which the fuzzers feed every reader.

A case depends only on its seed and its number, and its description begins with both, so that it can be run again alone.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

DEEP = 200  # levels of nesting: fewer than json and yaml can write, more than a reader expects
CONTROLS = "\x00\x07\x1b[31m\x7f\u0085\u200b\u202e\ufeff\U0010ffff"
HOSTILE = (
    *("", " ", "x", "null", "true", "0", "1e400", "NaN", "-1", "owner/repo:function", "../../../etc/passwd"),
    *("/dev/zero", "https://example.org/x", "javascript:alert(1)", "<script>alert(1)</script>", "{{ 7 * 7 }}"),
    *("%s%n", "__class__", "line\nline", "tab\there", "é\u0301", "漢字", CONTROLS, "\ud800", "k" * 100_000),
)
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30), 10**4000),
    *(0.5, -0.0, 1.0, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan")),
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [None], [[]], [1, "a"], {"": ""}, {"a": {"b": []}}, ["x"] * 1000)

Slot = tuple[Any, Any]  # a dict or a list, and the key or the index of one of its values


def documents(document: Any, seed: int, count: int) -> Iterator[tuple[str, Any]]:
    """Yield `count` pairs (what was changed, a changed copy) of a document of dicts, lists and plain values.

    json can write each copy; they contain NaN, integers of 4,000 digits and unpaired surrogates.
    """
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        holder = [copy.deepcopy(document)]
        changes = [_change(holder, rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        yield f"{seed}/{number}: {'; '.join(changes)}", holder[0]


def bytes_(data: bytes, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield `count` pairs (what was changed, a changed copy) of a file's bytes."""
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        change = rng.choice(_BYTES)
        yield f"{seed}/{number}: {change.__name__.strip('_')}", change(data, rng)


def _change(holder: list[Any], rng: random.Random) -> str:
    """Change one value somewhere below `holder[0]`, or, rarely, `holder[0]` itself."""
    slots = list(_slots(holder))
    inner = slots[1:]
    slot = rng.choice(inner) if inner and rng.random() < 0.98 else slots[0]
    change = rng.choice([_replace, _replace, _tweak, _tweak, _drop, _rename, _add, _wrap, _move, _repeat])
    place = f"{slot[1]!r:.80}"
    return f"{change.__name__.strip('_')} {place}" + change(slot, slots, rng)


def _slots(container: Any) -> Iterator[Slot]:
    """Yield every slot, outermost first; from a long list or table only the first 64 and the last."""
    keys = list(container) if isinstance(container, dict) else list(range(len(container)))
    for key in [*islice(keys, 64), *keys[64:][-1:]]:
        yield container, key
        if isinstance(container[key], dict | list):
            yield from _slots(container[key])


def _any_value(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(rng.choice((HOSTILE, NUMBERS, OTHERS))))


def _replace(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    slot[0][slot[1]] = _any_value(rng)
    return f" by {slot[0][slot[1]]!r:.60}"


def _tweak(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    """Change the value but keep its type, or write the same value as another type."""
    value = slot[0][slot[1]]
    if isinstance(value, bool):
        changed: Any = rng.choice((not value, int(value), str(value).lower()))
    elif isinstance(value, int):
        real = float(value) if abs(value) < 2**1000 else 1e308
        changed = rng.choice((-value, value + 1, value - 1, value * 10**6, real, str(value), real + 0.5, [value]))
    elif isinstance(value, float):
        changed = rng.choice((-value, value * 1e300, value + 1, str(value), int(value) if abs(value) < 1e300 else 0))
    elif isinstance(value, str):
        at = rng.randint(0, len(value))
        changed = rng.choice((value[:at], value[:at] + rng.choice(CONTROLS) + value[at:], value.swapcase(), value * 50))
    elif isinstance(value, list):
        changed = rng.choice((value[1:], value[:-1], value[::-1], dict(enumerate(map(str, value))), value[:1]))
        changed = {str(key): one for key, one in changed.items()} if isinstance(changed, dict) else changed
    elif isinstance(value, dict):
        changed = rng.choice((list(value.values()), list(value), dict(reversed(list(value.items())))))
    else:
        changed = _any_value(rng)
    slot[0][slot[1]] = changed
    return f" to {changed!r:.60}"


def _drop(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    container, key = slot
    if slot is slots[0]:
        container[key] = None
    else:
        del container[key]
    return ""


def _rename(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    container, key = slot
    if not isinstance(container, dict):
        return _replace(slot, slots, rng)
    word = str(key)  # YAML allows numbers as keys
    name = rng.choice((word[:-1], word + "s", word.upper(), word.replace("_", "-"), rng.choice(HOSTILE)))
    container[name] = container.pop(key)
    return f" to {name!r:.60}"


def _add(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    """Add a key or an item beside the slot."""
    container, key = slot
    value = _any_value(rng)
    if isinstance(container, dict):
        container[rng.choice(HOSTILE)] = value
    elif slot is not slots[0]:
        container.insert(key, value)
    return f" beside, {value!r:.60}"


def _wrap(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    levels = rng.choice((1, 1, 2, DEEP))
    value = slot[0][slot[1]]
    for _ in range(levels):
        value = {"a": value} if rng.random() < 0.5 else [value]
    slot[0][slot[1]] = value
    return f" {levels} deep"


def _move(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    """Copy the value of another slot here."""
    container, key = rng.choice(slots[1:] or slots)
    slot[0][slot[1]] = copy.deepcopy(container[key])
    return f" from {key!r:.60}"


def _repeat(slot: Slot, slots: list[Slot], rng: random.Random) -> str:
    container, key = slot
    times = rng.choice((1, 2, 1000))
    if isinstance(container, list) and slot is not slots[0]:
        container[key:key] = [container[key]] * times
    elif isinstance(container, dict):
        container.update({f"{key}{number}": copy.deepcopy(container[key]) for number in range(min(times, 20))})
    return f" {times} times"


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, max(0, len(data) - 1))]


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 16))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _flip_head(data: bytes, rng: random.Random) -> bytes:
    """Flip bits in the first 64 bytes, where a binary file has its type and the lengths of its parts."""
    return _flip(data[:64], rng) + data[64:]


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    run = rng.randbytes(rng.choice((1, 4, 64)))
    return data[:at] + run + data[at + len(run) :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(_RUNS) + data[at:]


def _cut_out(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.choice((1, 8, 100, 4096)) :]


def _double(data: bytes, rng: random.Random) -> bytes:
    """Repeat a stretch: keys that occur twice, lists with more items."""
    start = rng.randint(0, len(data))
    end = start + rng.choice((1, 16, 200, len(data)))
    return data[:end] + data[start:end] + data[end:]


def _swap_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a digit by a number that no reader expects."""
    places = [at for at, byte in enumerate(data[:100_000]) if 48 <= byte <= 57]
    if not places:
        return _insert(data, rng)
    at = rng.choice(places)
    return (
        data[:at]
        + rng.choice((b"9" * 5000, b"1e999", b"-1", b"0x1f", b"NaN", b"99999999999999999999"))
        + data[at + 1 :]
    )


def _other_encoding(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return rng.choice(
        (b"\xef\xbb\xbf" + data, text.encode("utf-16"), text.encode("utf-32"), data.replace(b"\n", b"\r"))
    )


_RUNS = (
    *(b"\x00", b"\x00" * 64, b"\xff\xfe", b"\xc3\x28", b"\x1b[2J", b"[" * 100_000, b'{"a":' * 50_000, b"}", b'"', b","),
    *(b"\\ud800", b"9" * 5000, b"\n", b"\t", b" " * 10_000, b"&a [*a,*a]\n", b"!!python/object:x {}\n"),
)
_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_truncate, _flip, _flip_head, _overwrite, _insert, _cut_out, _double, _swap_number, _other_encoding),
)
