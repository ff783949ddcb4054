"""No circular imports among modules, imports inside functions and for types included."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from import_walk import PACKAGE, imports, sources


def graph() -> dict[str, set[str]]:
    """Map each module to the modules of ours that it imports. A name imported from a package belongs to the package itself, unless there
    is a module of that name."""
    modules = {}
    for path in sources():
        words = ["compress", *path.relative_to(PACKAGE).with_suffix("").parts]
        modules[".".join(words).removesuffix(".__init__")] = path
    edges: dict[str, set[str]] = {}
    for module, path in modules.items():
        names = {next((name for name in prefixes(item.name) if name in modules), module) for item in imports(path)}
        edges[module] = names - {module}
    return edges


def prefixes(name: str) -> Iterator[str]:
    """Yield `a.b.c`, `a.b`, `a`."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected sets of modules (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(edges[module]):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            start = stack.index(module)
            if len(stack) > start + 1:
                components.append(sorted(stack[start:]))
            del stack[start:]

    sys.setrecursionlimit(10_000)
    for module in edges:
        if module not in number:
            visit(module)
    return components


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "e"}, "e": {"f"}, "f": {"d"}, "g": set[str]()}
    assert circles(edges) == [["b", "c"], ["d", "e", "f"]]


def test_no_module_imports_itself_through_others() -> None:
    edges = graph()
    assert sum(map(len, edges.values())) > 500
    wrong = circles(edges)
    assert not wrong, "\n".join(
        f"{module} -> {', '.join(sorted(edges[module] & set(circle)))}" for circle in wrong for module in circle
    )
