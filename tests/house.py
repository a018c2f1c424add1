"""Holds the code to the plan of the house: `python -m tests.house`, exit 1 beyond a limit.

It reads the Python of the four packages and the glossary of docs/architecture.md. What may import
what is held by import-linter (`make layers`); here is what that cannot say: sizes, circles of
modules, class names, and glossary words that the code no longer has.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import grimp

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGES = ("server", "orchestrator", "stages", "openapi")
MAX_ROOT_FILES = {"server": 6, "stages": 2}
MAX_FILES = 20
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_GLOSSARY = 25
FAMILIES = "stages/models/"
GLOSSARY_ENTRY = re.compile(r"^\| \*\*(?P<word>[^*]+)\*\* \| (?P<names>[^|]*)\|", re.MULTILINE)


def main() -> int:
    """Print what is beyond a limit."""
    files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in _paths()}
    trees = {name: ast.parse(text) for name, text in files.items()}
    glossary = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    findings = [
        *crowded_folders(files),
        *long_files(files),
        *long_functions(trees),
        *repeated_classes(trees),
        *circles(),
        *stale_words(glossary, files),
    ]
    for finding in findings:
        print(finding)  # noqa: T201 - what it is for
    print(f"house: {len(files)} files, {len(findings)} findings")  # noqa: T201
    return 1 if findings else 0


def _paths() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def crowded_folders(files: dict[str, str]) -> Iterator[str]:
    """Folders with more Python files of their own than they may have."""
    for folder, count in Counter(name.rpartition("/")[0] for name in files).items():
        most = MAX_ROOT_FILES.get(folder, MAX_FILES)
        if count > most:
            yield f"{folder}: {count} files, at most {most}"


def long_files(files: dict[str, str]) -> Iterator[str]:
    """Files with too many lines."""
    for name, text in files.items():
        if (lines := text.count("\n")) > MAX_FILE_LINES:
            yield f"{name}: {lines} lines, at most {MAX_FILE_LINES}"


def long_functions(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Functions with too many lines, decorators and docstring included."""
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min(each.lineno for each in (node, *node.decorator_list))
                lines = (node.end_lineno or first) - first + 1
                if lines > MAX_FUNCTION_LINES:
                    yield f"{name}:{first}: {node.name} has {lines} lines, at most 60"


def repeated_classes(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Public class names that stand in two places; families may repeat each other's."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    for word, names in places.items():
        families = [name.removeprefix(FAMILIES).split("/")[0] for name in names]
        are_families = all(name.startswith(FAMILIES) for name in names)
        if len(names) > 1 and not (are_families and len(set(families)) == len(names)):
            yield f"class {word}: {', '.join(names)}"


def circles() -> Iterator[str]:
    """Modules, or folders beside each other, that import each other; type-only imports count."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    yield from _circle(imports)
    for package in sorted(m for m in graph.modules if graph.find_children(m)):
        siblings = {
            module: sibling
            for sibling in graph.find_children(package)
            for module in (sibling, *graph.find_descendants(sibling))
        }
        between: dict[str, set[str]] = defaultdict(set)
        for module, sibling in siblings.items():
            between[sibling] |= {siblings[m] for m in imports[module] if m in siblings} - {sibling}
        yield from _circle(between)


def _circle(imports: dict[str, set[str]]) -> Iterator[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        yield f"circle: {' <- '.join(error.args[1])}"


def stale_words(glossary: str, files: dict[str, str]) -> Iterator[str]:
    """Glossary entries beyond the limit, or with a name that the code does not have."""
    entries = list(GLOSSARY_ENTRY.finditer(glossary))
    if not 0 < len(entries) <= MAX_GLOSSARY:
        yield f"docs/architecture.md: {len(entries)} glossary entries, 1 to {MAX_GLOSSARY} expected"
    code = "\n".join(files.values())
    for entry in entries:
        for name in re.findall(r"`([^`]+)`", entry["names"]):
            if not re.search(rf"\b{re.escape(name)}\b", code):
                yield f"glossary: {entry['word']}: no `{name}` in the code"


if __name__ == "__main__":
    sys.exit(main())
