"""Lines of Python rewritten, so that a card in them is the device that is being timed.

Scripts name their device in four ways: as a text (``"cuda"``, ``f"cuda:{i}"``), as a choice
(``"cuda" if torch.cuda.is_available() else "cpu"``), as a number (``.to(0)``), or one after the
other, to compare them. ``torch.cuda``, ``.cuda()`` and `DataParallel` are replaced as well. Numbers
of lines stay as they are, so that errors name the user's own.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from types import CodeType

DEVICE = "__gpu_studio_device__"
"""The name that stands for the device being timed."""
CARDS = "__gpu_studio_cards__"
"""The name that stands for `torch.cuda`."""
_CARD = re.compile(r"(cuda|xpu|mps)(:(\d+|%[ds]|\{\w*\})?)?")
_CPU = re.compile(r"cpu(:0)?")
_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class Rewritten:
    """The parts of a script.

    Args:
        text: the script.
        name: for errors.

    Attributes:
        whole: all of it, to be run once.
        repeated: what each later run does: without imports and definitions, which are there.
        functions: the names that it defines at its top.
        remarks: what was taken as something else, each with its line.
        size: the number that it calls ``size``, with its line; None without one.

    Raises:
        SyntaxError: it is no Python.
    """

    def __init__(self, text: str, name: str) -> None:
        tree = ast.parse(text, name)
        self.functions = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.remarks: list[tuple[int, str]] = []
        self.size = _size_of(tree)
        compared = _Compared(tree, self.functions)
        if compared.line:
            words = "This code compares the CPU and a card itself. Here, each side runs its part."
            self.remarks.append((compared.line, words))
        named = _Named(is_compared=bool(compared.line))
        self.whole = ast.fix_missing_locations(named.visit(tree))
        if named.line:
            words = "The card that this code names is the device being timed, also if it is the CPU"
            self.remarks.append((named.line, f"{words}."))
        repeated = [one for one in self.whole.body if not isinstance(one, _DEFINING)]
        self.repeated = ast.Module(repeated, [])

    @property
    def does_something(self) -> bool:
        """Whether there is anything to run besides definitions and texts."""
        return any(
            not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            for one in self.repeated.body
        )


def _is_text(node: ast.AST | None, pattern: re.Pattern[str]) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and pattern.fullmatch(node.value) is not None
    )


def _size_of(tree: ast.Module) -> tuple[int, int] | None:
    """Return the only number that is called size at the top, with its line."""
    found = [
        (one.value.value, one.lineno)
        for one in tree.body
        if isinstance(one, ast.Assign)
        and [getattr(target, "id", "").lower() for target in one.targets] == ["size"]
        and isinstance(one.value, ast.Constant)
        and type(one.value.value) is int
    ]
    return found[0] if len(found) == 1 and found[0][0] > 0 else None


def _with_size(tree: ast.Module, size: int) -> ast.Module:
    """Return a script with another number for its size."""
    body: list[ast.stmt] = []
    for one in tree.body:
        if isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "").lower() == "size":
            one = ast.copy_location(ast.Assign(one.targets, ast.Constant(size)), one)
        body.append(one)
    return ast.fix_missing_locations(ast.Module(body, []))


def compiled(tree: ast.Module, name: str, size: int | None = None) -> CodeType:
    """Return the code of a script, with a number for its size if one is given."""
    made: CodeType = compile(tree if size is None else _with_size(tree, size), name, "exec")
    return made


class _Compared:
    """Finds the same statement for the CPU and for a card, and leaves the first of the two.

    Also a loop over both. Its attribute ``line`` is where; 0 if there is nothing of that.
    """

    def __init__(self, tree: ast.Module, functions: Collection[str]) -> None:
        self.line, self._functions = 0, functions
        self._first: dict[int, ast.stmt] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.For, ast.comprehension)):
                self._shorten(node)
        blocks = [*_blocks(tree)]
        self._find_twins([one for block in blocks for one in block])
        for block in blocks:
            block[:] = self._without_twins(block)

    def _shorten(self, loop: ast.For | ast.comprehension) -> None:
        listed = loop.iter
        if not isinstance(listed, (ast.List, ast.Tuple)) or len(listed.elts) < 2:
            return
        names = [next(_texts(one), one) for one in listed.elts]
        cards = [name for name in names if _is_text(name, _CARD)]
        if cards and all(_is_text(name, _CPU) for name in names if name not in cards):
            self.line = self.line or listed.lineno
            listed.elts[:] = [listed.elts[names.index(cards[0])]]

    def _find_twins(self, statements: Sequence[ast.stmt]) -> None:
        alike: dict[str, list[ast.stmt]] = defaultdict(list)
        for one in statements:
            if (call := self._measured(one)) is not None:
                alike[re.sub(r"'(cpu|cuda|xpu|mps)(:\d+)?'", "", ast.dump(call))].append(one)
        for group in alike.values():
            if len({*map(_is_for_card, group)}) == 2:
                self.line = self.line or group[1].lineno
                self._first.update((id(one), group[0]) for one in group[1:])

    def _without_twins(self, statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        for one in statements:
            first = self._first.get(id(one))
            if first is None:
                yield one
            elif isinstance(one, ast.Assign) and isinstance(first, ast.Assign):
                taken = ast.Name(getattr(first.targets[0], "id", ""), ast.Load())
                yield ast.copy_location(ast.Assign(one.targets, taken), one)
            else:
                yield ast.copy_location(ast.Pass(), one)  # its block may have nothing else

    def _measured(self, statement: ast.stmt) -> ast.Call | None:
        """Return the call of a function of the script with a device in a statement."""
        if isinstance(statement, ast.Expr):
            places: Iterable[ast.AST] = ast.walk(statement.value)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            places = [statement.value]
        else:
            return None
        calls = (one for one in places if isinstance(one, ast.Call) and any(_texts(one)))
        return next((one for one in calls if getattr(one.func, "id", "") in self._functions), None)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements outside functions, from the first line on."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
            for one in block:
                if not isinstance(one, _DEFINING):
                    yield from _blocks(one)


def _texts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the names of devices in an expression."""
    return (one for one in ast.walk(node) if _is_text(one, _CARD) or _is_text(one, _CPU))


def _is_for_card(statement: ast.stmt) -> bool:
    return any(_is_text(one, _CARD) for one in _texts(statement))


class _Named(ast.NodeTransformer):
    """Puts the device that is timed in the place of a card's name.

    Args:
        is_compared: whether the code names the CPU only to compare it.
    """

    def __init__(self, *, is_compared: bool) -> None:
        self.line = 0
        self._is_compared = is_compared
        self._torch = {"torch"}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_module = isinstance(node.value, ast.Name) and node.value.id in self._torch
        return _cards(node) if is_module and node.attr == "cuda" else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        self._torch.update(one.asname for one in node.names if one.name == "torch" and one.asname)
        named = {one.asname: None for one in node.names if one.name == "torch.cuda" and one.asname}
        return [node, *(_named_cards(node, str(name)) for name in named)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """Take what is imported from `torch.cuda` from what stands for it."""
        if node.module not in ("torch", "torch.cuda"):
            return node
        names = [one for one in node.names if node.module == "torch.cuda" or one.name == "cuda"]
        kept = [one for one in node.names if one not in names and one.name != "*"]
        given = [
            _named_cards(node, one.asname or one.name, "" if one.name == "cuda" else one.name)
            for one in names
            if one.name != "*"
        ]
        left = [ast.copy_location(ast.ImportFrom(node.module, kept, 0), node)] if kept else []
        return [*left, *given] if given else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_cpu = self._is_compared and _is_text(node, _CPU)
        return self._device(node) if is_cpu or _is_text(node, _CARD) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Take the choice of a card, or of the CPU where there is none."""
        names = (node.body, node.orelse)
        if any(_is_text(one, _CARD) for one in names) and all(
            _is_text(one, _CARD) or _is_text(one, _CPU) for one in names
        ):
            return self._device(node)
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        if _begins(node.values):
            return self._device(node)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):  # the other parts have to stay texts
                part.value = self.visit(part.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        is_number_added = isinstance(node.op, (ast.Add, ast.Mod)) and _begins([node.left])
        return self._device(node) if is_number_added else self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> ast.AST:
        return node  # Python takes no name there

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        first = node.args[0] if node.args else None
        if called == "DataParallel":
            node.func = _cards(node.func, "parallel")
        elif called == "cuda" and isinstance(node.func, ast.Attribute):
            node.args[:0] = [node.func.value]
            node.func = _cards(node.func, "moved")
        if called == "format" and _begins([getattr(node.func, "value", node.func)]):
            return self._device(node)
        if called == "device" and first is not None and _is_text(first, _CARD):
            node.args, node.keywords = node.args[:1], []  # an index does not go with a whole name
        if called in ("to", "device") and _is_number(first):
            node.args[0] = self._device(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "device" and _is_number(keyword.value):
                keyword.value = self._device(keyword.value)
        if called in ("to", "cpu") or (called == "device" and not self._is_compared):
            return self._visit_move(node)
        return self.generic_visit(node)

    def _visit_move(self, node: ast.Call) -> ast.AST:
        """Leave ``.to("cpu")`` as it is: it is a copy back."""
        kept = [one for one in node.args if _is_text(one, _CPU)]
        if not kept:
            return self.generic_visit(node)
        node.func = self.visit(node.func)
        return node

    def _device(self, node: ast.AST) -> ast.expr:
        self.line = self.line or getattr(node, "lineno", 0)
        name = ast.copy_location(ast.Name(DEVICE, ast.Load()), node)
        return ast.fix_missing_locations(name)


def _cards(node: ast.AST, name: str = "") -> ast.expr:
    """Return what stands for `torch.cuda`, or a part of it, in the place of an expression."""
    cards: ast.expr = ast.Name(CARDS, ast.Load())
    made = ast.Attribute(cards, name, ast.Load()) if name else cards
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _named_cards(node: ast.stmt, name: str, part: str = "") -> ast.stmt:
    """Return a line that gives a name to that."""
    made = ast.Assign([ast.Name(name, ast.Store())], _cards(node, part))
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _begins(values: Sequence[ast.AST]) -> bool:
    """Return whether an expression that is put together begins with a card's name and a colon."""
    first = values[0] if values else None
    return _is_text(first, re.compile(r"(cuda|xpu|mps):(%[ds]|\{\w*\})?"))


def _is_number(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
