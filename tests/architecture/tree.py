"""The tree as data: its modules, what they import, what they name, and the files git would ship."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("adapters", "functions", "infra", "tests")


@dataclass(frozen=True)
class Source:
    """One Python file under the root it was found in."""

    root: Path
    path: Path
    module: str

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def is_test(self) -> bool:
        return self.within("tests")

    def within(self, *prefixes: str) -> bool:
        return any(under(self.module, prefix) for prefix in prefixes)

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(self.root)}:{line}"

    def imports(self) -> Iterator[tuple[int, str]]:
        """Every import wherever it stands: `from a.b import c` is `a.b.c`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{self._base(node)}.{n.name}") for n in node.names)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.split(".")
        parents = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parents, *([node.module] if node.module else [])])

    def uses(self) -> Iterator[tuple[int, str]]:
        """Imports, and every dotted expression with its first name resolved through them."""
        known: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    known[name.asname or name.name.partition(".")[0]] = (
                        name.name if name.asname else name.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom):
                for name in node.names:
                    known[name.asname or name.name] = f"{self._base(node)}.{name.name}"
        yield from self.imports()
        for node in ast.walk(self.tree):
            dotted = _dotted(node)
            first, _, rest = dotted.partition(".")
            if first in known:
                yield getattr(node, "lineno", 0), known[first] + (f".{rest}" if rest else "")


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def under(name: str, prefix: str) -> bool:
    """Whether a dotted name is the prefix or something in it."""
    return name == prefix or name.startswith(prefix + ".")


def sources(root: Path = ROOT) -> list[Source]:
    """All Python files of the layers and of the importable folders."""
    found = []
    for base in [*sorted(root.glob("layers/*/python")), root]:
        tops = TOPS if base == root else [p.name for p in base.iterdir() if p.is_dir()]
        for top in tops:
            for path in sorted((base / top).rglob("*.py")):
                parts = path.relative_to(base).with_suffix("").parts
                parts = parts[:-1] if parts[-1] == "__init__" else parts
                found.append(Source(root, path, ".".join(parts)))
    return found


def shipped(root: Path = ROOT) -> list[Path]:
    """The files that are, or would be, committed: relative to the root, ignored ones left out."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return sorted({Path(name) for name in listed.split("\0") if name and (root / name).exists()})


def sample(root: Path, files: dict[str, str]) -> list[Source]:
    """A small tree with these files, to show that a rule can fail."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return sources(root)
