"""A terminal command: a function with its declaration; from it argparse's parser is made.

Its exit status: 0 done, 1 what was asked about failed, 2 wrong use, 3 the answer is in doubt, 130
stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

DONE, FAILED, WRONG_USE, DOUBTFUL, INTERRUPTED = 0, 1, 2, 3, 130
JSON_EVENTS = "print JSON, one event per line"
JSON_OBJECT = "print one JSON object"


_WRONG_WORD = re.compile(r"invalid choice: '([^']*)'|unrecognized arguments: (\S+)")


class WrongUseError(Exception):
    """The command line makes no sense; the text is the message to show."""


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return “ Did you mean …?” with the name that is almost the word; else nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word, names, n=1)
    return f" Did you mean “{near[0]}”?" if near else ""


def no_such(what: str, name: str, names: Iterable[str], also: Iterable[str] = ()) -> WrongUseError:
    """Return the error about a name that is none.

    Args:
        what: what it should name, as in “workload”.
        name: what was typed.
        names: those that there are.
        also: other words that may have been meant.
    """
    known = [*names]
    near = did_you_mean(name, [*known, *also])
    return WrongUseError(f"There is no {what} “{name[:40]}”: choose {', '.join(known)}.{near}")


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage text.

    Attributes:
        usual_part: the part to run if the first word names none: “bench matmul” is short for
            “bench run matmul”. Empty if a part has to be named.
        bare_part: the part to run without any word; the usual one if empty.
    """

    usual_part = bare_part = ""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUseError`."""
        wrong = _WRONG_WORD.search(message)
        near = did_you_mean(wrong[1] or wrong[2], self._first_words()) if wrong is not None else ""
        raise WrongUseError(f"{message.rstrip('.')}.{near} See “{self.prog} --help”.")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, with the usual part's name added where it is left out."""
        for arg in args or ():
            if arg.startswith("--") and arg.endswith("=--"):  # argparse takes “--” for nothing
                self.error(f"argument {arg[:-3]}: expected one argument")
        if not args and self.bare_part:
            args = [self.bare_part]
        elif self.usual_part and (not args or args[0] not in self._first_words()):
            args = [self.usual_part, *(args or ())]
        found, extra = super().parse_known_args(args, namespace)
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra

    def _first_words(self) -> set[str]:
        words: set[str] = set()
        for action in self._actions:
            words.update(action.option_strings)
            words.update(map(str, action.choices or ()))
        return words


class Option:
    """An argument of a command, declared once: help, manual and completion are made from it.

    Args:
        name: ``--size``, or a word without dashes.
        sentence: what it does.
        more: as for argparse.
    """

    def __init__(self, name: str, sentence: str, **more: Any) -> None:
        self.name, self.sentence, self.more = name, sentence, more

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add it to a parser, or to a group of one."""
        parser.add_argument(self.name, help=self.sentence, **self.more)


class OneOf:
    """Options that exclude each other."""

    def __init__(self, *options: Option) -> None:
        self.options = options

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add them to a parser."""
        group = parser.add_mutually_exclusive_group()
        for one in self.options:
            one.add_to(group)


Run = Callable[[argparse.Namespace, Path], "int | None"]
"""Runs a command with its arguments and the log's path; returns the exit status, None if done."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, or a part of one: `command` makes one of a function, `group` one of its parts.

    Attributes:
        about: what it does, for its own help.
        run: runs it.
        options: its arguments.
        json: the help of ``--json``; empty if there is no such option.
        parts: its sub-commands by name; such a command does nothing itself.
        usual_part, bare_part: see `CommandParser`.
    """

    about: str
    run: Run | None = None
    options: Sequence[Option | OneOf] = ()
    json: str = JSON_EVENTS
    parts: Mapping[str, Command] = field(default_factory=dict)
    usual_part: str = ""
    bare_part: str = ""

    @property
    def help(self) -> str:
        """The first sentence of what it does, for the list of a command's parts."""
        first = self.about.partition(". ")[0].rstrip(".").replace("%", "%%")
        return first[:1].lower() + first[1:]

    def fill(self, parser: CommandParser) -> None:
        """Give a parser this command's description, arguments and parts."""
        parser.description = self.about
        if self.parts:
            parser.usual_part, parser.bare_part = self.usual_part, self.bare_part
            parts = parser.add_subparsers(metavar="|".join(self.parts), required=True)
            for name, part in self.parts.items():
                part.fill(parts.add_parser(name, help=part.help, allow_abbrev=False))
            return
        for one in self.options:
            one.add_to(parser)
        if self.json:
            parser.add_argument("--json", action="store_true", help=self.json)
        parser.add_argument(
            "-q", "--quiet", action="store_true", help="show no progress and no notes"
        )
        parser.set_defaults(run=self.run)


def command(*options: Option | OneOf, json: str = JSON_EVENTS) -> Callable[[Run], Command]:
    """Declare a function as a command: its docstring is the help, the first sentence the short one.

    Args:
        options: its arguments.
        json: the help of ``--json``; empty if there is no such option.
    """

    def declared(run: Run) -> Command:
        about = " ".join((run.__doc__ or "").split())
        return Command(about=about, run=run, options=options, json=json)

    return declared


def group(
    about: str, parts: Mapping[str, Command], *, usual_part: str = "", bare_part: str = ""
) -> Command:
    """Return a command of parts."""
    return Command(about=about, parts=parts, usual_part=usual_part, bare_part=bare_part)
