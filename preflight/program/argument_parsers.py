"""Command-line parsers of the program: Python's own argparse, with the program's types and actions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable

from preflight.program.annotation_stand_ins import STANDS_IN
from preflight.program.cached_executions import COMMAND
from preflight.program.classes import Classes
from preflight.program.machine_facts import Size
from preflight.program.python_callbacks import Converter, unknown_type
from preflight.program.values import (
    Bound,
    Class,
    Function,
    Names,
    Partial,
    Raised,
    Symbol,
    Unknown,
    Value,
    both,
)
from preflight.program.verdict import Unstated
from preflight.source.typing_without_import import Any, NoReturn

OWN = (Function, Bound, Partial, Class)
UNREAD = "options that could not be read"


class ParserError(Exception):
    """A command line rejected by argparse. option: the one that it names."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


class Parser(argparse.ArgumentParser):
    """A parser that opens no file, prints nothing and does not exit."""

    def __init__(self, *given: Any, **named: Any) -> None:
        named["fromfile_prefix_chars"] = None
        named.setdefault("prog", "program")
        super().__init__(*given, **named)

    def error(self, message: str) -> NoReturn:
        """Reject the command line."""
        found = re.match(r"argument ([^:]+):", message)
        raise ParserError(message, found[1].split("/")[0] if found else "")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Exit without a run."""
        raise ParserError(message or "prints and exits", "")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if isinstance(arg_string, Unstated):
            return Unknown(facts=(str(arg_string),))
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if not isinstance(value, Unknown):
            super()._check_value(action, value)

    def _get_formatter(self) -> argparse.HelpFormatter:
        """The width is stated because the text is not shown: querying the terminal would load all of shutil."""
        return argparse.HelpFormatter(prog=self.prog, width=80)

    def _print_message(self, message: str, file: Any = None) -> None:
        return None


class Options(Classes):
    """How parsers are built and used."""

    after_parsing: Callable[[Value], Value] | None = None
    """An action on the parsed arguments, for a program that then checks them in the same function."""

    def call_parser(self, function: Any, receiver: Any, arguments: list[Value], keywords: Names) -> Value:
        """A method of a parser or of one of its groups."""
        name = function.__name__
        if name == "add_argument":
            return self._add_argument(receiver, arguments, keywords)
        if name in ("parse_args", "parse_known_args"):
            return self._parse_command(receiver, name, arguments, keywords)
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            texts = {key: value for key, value in keywords.items() if key in ("required", "conflict_handler")}
            return self.native(function, [], texts)
        if name == "error" and arguments:
            shown = self.text(arguments[0])
            raise self.failure(ParserError(shown if isinstance(shown, str) else "", ""))
        if name in ("set_defaults", "get_default"):
            return self.native(function, arguments, keywords)
        if name == "__init__" or isinstance(receiver, argparse.Action):
            return self.native(function, arguments, keywords)
        if name.startswith(("format_", "print_")):
            return ""
        self.unread_options.append(f"{name} of a parser")
        return self.gap(f"{name} of a parser")

    sized: list[argparse.Action]
    """Options with the number of processes as their default."""

    def new_parser(self, given: list[Value], named: Names) -> Value:
        """argparse.ArgumentParser(...)"""
        known = {
            key: value
            for key, value in named.items()
            if key in ("allow_abbrev", "conflict_handler", "add_help", "argument_default", "prefix_chars", "parents")
            and not isinstance(value, (Unknown, Symbol))
        }
        return self.native(Parser, [], known)

    def _add_argument(self, receiver: Any, arguments: list[Value], keywords: Names) -> Value:
        names = [one for one in arguments if isinstance(one, str)]
        if len(names) != len(arguments) or isinstance(keywords.get("dest"), Unknown):
            self.unread_options.append("an option with an unknown name")
            return self.gap("an option with an unknown name")
        known = {key: value for key, value in keywords.items() if key not in ("help", "metavar", "version")}
        sized = type(known.get("default")) is Size
        if sized:
            known["default"] = int(known["default"])
            self.environ.open -= 1
        if isinstance(known.get("action"), (Unknown, Symbol)):
            self.unread_options.append(f"{names[:1]}: an unknown action")
            return self.gap("an unknown action")
        self._plain_keywords(known)
        try:
            added = receiver.add_argument(*names, **known)
            if sized:
                self.sized.append(added)
            return added
        except (argparse.ArgumentError, ValueError, TypeError, IndexError) as error:
            if self.causes:
                self.unread_options.append(f"{names[:1]}: added on several paths")
                return None
            raise self.failure(error, sure=not self.runs_packages) from None  # patches may add the options elsewhere

    def _plain_keywords(self, known: Names) -> None:
        """Replace parts that argparse could not use."""
        kind = known.get("type")
        if isinstance(kind, OWN):
            known["type"] = self.converter(kind)
        elif isinstance(kind, (Unknown, Symbol)) or (isinstance(kind, type) and hasattr(kind, STANDS_IN)):
            known["type"] = unknown_type
        elif kind is not None and kind not in (str, int, float, bool) and not isinstance(kind, type):
            known["type"] = self.converter(kind)
        choices = known.get("choices")
        if choices is not None:
            items = self.items(choices)
            if isinstance(items, Unknown) or any(isinstance(one, Unknown) for one in items):
                del known["choices"]
            else:
                known["choices"] = items
        if isinstance(known.get("nargs"), (Unknown, Symbol)):
            known["nargs"] = "*"
            self.unread_options.append("an option with an unknown number of values")
        for key in ("required", "const"):
            if isinstance(known.get(key), Unknown):
                del known[key]

    def converter(self, function: Value) -> Any:
        """A type function of the program, called by argparse."""
        return Converter(self, function)

    def _parse_command(self, parser: Any, name: str, arguments: list[Value], keywords: Names) -> Value:
        given = arguments[0] if arguments else keywords.get("args")
        if given is None:
            self.ask(COMMAND)
            given = self.argv[1:]
        given = self.items(given)
        if isinstance(given, Unknown) or any(isinstance(one, Unknown) for one in given):
            return self.lost("a command line that is unknown", given if isinstance(given, Unknown) else both(*given))
        space = arguments[1] if len(arguments) > 1 else keywords.get("namespace")
        try:
            found, rest = parser.parse_known_args(given, space if isinstance(space, argparse.Namespace) else None)
        except ParserError as error:
            raise self._refused(parser, error) from None
        except Raised:
            raise
        except (argparse.ArgumentError, ValueError, TypeError, KeyError) as error:
            raise self.failure(error) from None
        if name == "parse_known_args":
            if self.after_parsing is not None:
                self.after_parsing(found)
            return found, rest
        if rest := [word for word in rest if not isinstance(word, Unstated)]:
            refused = self.failure(ParserError(f"unrecognized arguments: {' '.join(rest)}", ""))
            if not self.unread_options:
                raise refused
            self.note(refused, Unknown(gaps=(f"{UNREAD} ({self.unread_options[0]})",)))
        if self.after_parsing is not None:
            self.after_parsing(found)
        return found

    def _refused(self, parser: Any, error: ParserError) -> Raised:
        failure = self.failure(error)
        action = parser._option_string_actions.get(error.option)
        if action is not None:
            failure.reads = (action.dest,)
        return failure
