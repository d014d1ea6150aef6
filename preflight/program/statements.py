"""Statements: the path that a known condition selects, or both if it is unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from preflight.program.assignments_and_raises import Refusing
from preflight.program.interpreter_state import Done, Note, Side
from preflight.program.ir import Node, reaches_parser
from preflight.program.known_function_shortcuts import copies_fields
from preflight.program.numpy_functions import bounded, is_array
from preflight.program.operation_limits import safe_arithmetic
from preflight.program.values import (
    MISSING,
    Exhausted,
    Object,
    Raised,
    Scope,
    Symbol,
    Unknown,
    Value,
    both,
    opposite,
    parted,
)

BREAK, CONTINUE = Done("break"), Done("continue")
LOOPS = 100_000
BUILDING = ("parse", "patches")
"""Stages in which options are added."""
IN_PLACE = {"Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul}
"""Operations that change an array in place."""
Thunk = Callable[[], "Done | None"]


class Statements(Refusing):
    """One method per kind of statement, selected by its name."""

    def block(self, body: Iterable[Node], scope: Scope) -> Done | None:
        """Run statements until one ends the block."""
        rest = tuple(body)
        for at, node in enumerate(rest):
            self.step()
            self.line, self.end = node[1], _end(node)
            if node[0] == "If":
                truth, reads = self._tested(node[3], scope)
                if isinstance(truth, Unknown):
                    finished, done = self._branch(node, truth, reads, rest[at + 1 :], scope)
                    if finished:
                        return done
                else:
                    done = self._guarded(node[4] if truth else node[5], reads, scope)
            else:
                handler = self.statements.get(node[0])
                done = handler(node, scope) if handler is not None else self._unread(node)
            if done is not None:
                return self._after_maybe(done, rest[at + 1 :], scope) if done.maybe else done
        return None

    statements: dict[str, Callable[[Node, Scope], Done | None]]
    """The method of each kind of statement."""

    def _unread(self, node: Node) -> Done | None:
        self.lost(f"{node[0]} statement")
        return None

    def _tested(self, test: Node, scope: Scope) -> tuple[bool | Unknown, tuple[str, ...]]:
        """Whether a condition holds, and the arguments that it read."""
        mark = len(self.reads)
        truth = self.truth(self.evaluate(test, scope))
        return truth, self.read_since(mark)

    def _guarded(self, body: tuple[Node, ...], reads: tuple[str, ...], scope: Scope) -> Done | None:
        if not body:
            return None
        self.guards.append(reads)
        try:
            return self.block(body, scope)
        finally:
            self.guards.pop()

    def _branch(
        self, node: Node, cause: Unknown, reads: tuple[str, ...], rest: tuple[Node, ...], scope: Scope
    ) -> tuple[bool, Done | None]:
        """Follows both sides of an unknown condition, and the rest of the block if only one of them continues. Returns
        whether the rest of the block has run, and how it ended."""
        one = self.explore(lambda: self._guarded(node[4], reads, scope), opposite(cause))
        other = self.explore(lambda: self._guarded(node[5], reads, scope), cause)
        ends = [side.done is not None for side in (one, other)]
        if one.raised is not None or other.raised is not None or ends[0] == ends[1]:
            return False, self._settle(one, other, cause)
        ended, falling = (one, other) if ends[0] else (other, one)

        def go_on() -> Done | None:
            self.replay(falling)
            return self.block(rest, scope)

        return True, self._settled(ends[0], ended, self.explore(go_on, cause if ends[0] else opposite(cause)), cause)

    def _settled(self, first: bool, ended: Side, falling: Side, cause: Unknown) -> Done | None:
        """The state after two paths of which one ended. first: the one on which the condition holds."""
        return self._settle(ended, falling, cause) if first else self._settle(falling, ended, cause)

    def _settle(self, one: Side, other: Side, cause: Unknown) -> Done | None:
        """The state after two paths, and how they ended."""
        if one.raised is not None and other.raised is not None:
            self._both_raise(one.raised, other.raised, cause)
        for side, good, where in ((one, other, opposite(cause)), (other, one, cause)):
            if side.raised is not None:
                self.note(side.raised, where)
                self.replay(good)
                return good.done
        self.merge(one, other, cause)
        return self._joined(one.done, other.done, cause)

    def _both_raise(self, one: Raised, other: Raised, cause: Unknown) -> None:
        raise one if one.sure or not other.sure else other

    def _joined(self, one: Done | None, other: Done | None, cause: Unknown) -> Done | None:
        if one is None and other is None:
            return None
        if one is None or other is None:
            done = one or other
            return done._replace(maybe=True, cause=both(cause, done.cause)) if done is not None else None
        maybe = one.maybe or other.maybe
        open_by = both(one.cause, other.cause) if maybe else None
        if one.kind == other.kind:
            return Done(one.kind, self.join(one.value, other.value, cause), maybe, open_by)
        returned = one if one.kind == "return" else other
        return Done(returned.kind, returned.value, True, both(cause, open_by))

    def _after_maybe(self, done: Done, rest: tuple[Node, ...], scope: Scope) -> Done | None:
        """The code after a statement that may have ended the block."""
        cause = done.cause or self.gap("a statement that ends a block on some paths")
        cause = Unknown((parted(fact)[0] for fact in cause.facts), cause.gaps, computed=True)
        side = self.explore(lambda: self.block(rest, scope), cause)
        if side.raised is not None:
            self.note(side.raised, cause)
            return done._replace(maybe=False)
        self.merge(side, Side(None, None, {}), cause)
        if side.done is None:
            return done
        return self._joined(done._replace(maybe=False), side.done, cause)

    # simple statements

    def _s_Expr(self, node: Node, scope: Scope) -> None:
        if node[3][0] != "Constant":
            self.evaluate(node[3], scope)

    def _s_Pass(self, node: Node, scope: Scope) -> None:
        return None

    def _s_Global(self, node: Node, scope: Scope) -> None:
        scope.globals |= frozenset(node[3])

    def _s_Nonlocal(self, node: Node, scope: Scope) -> None:
        scope.nonlocals |= frozenset(node[3])

    def _s_Return(self, node: Node, scope: Scope) -> Done:
        return Done("return", self.evaluate(node[3], scope) if node[3] is not None else None)

    def _s_Break(self, node: Node, scope: Scope) -> Done:
        return BREAK

    def _s_Continue(self, node: Node, scope: Scope) -> Done:
        return CONTINUE

    def _s_Import(self, node: Node, scope: Scope) -> None:
        self.import_statement(node, scope)

    def _s_ImportFrom(self, node: Node, scope: Scope) -> None:
        self.import_from(node, scope)

    def _s_Assign(self, node: Node, scope: Scope) -> None:
        mark = len(self.reads)
        value = self.evaluate(node[4], scope)
        reads = self.read_since(mark)
        for target in node[3]:
            self._bind(target, value, reads, scope)

    def _bind(self, target: Node, value: Value, reads: tuple[str, ...], scope: Scope) -> None:
        """Assign, and remember the arguments behind the value."""
        self.assign(target, value, scope)
        if target[0] == "Name":
            self.originate(scope.names, target[3], reads)
        elif target[0] == "Attribute" and (reads or self.origins):
            owner = self.evaluate(target[3], scope)
            names = self.names_of(owner)
            if names is not None:
                self.originate(names, target[4], tuple(one for one in reads if one != target[4]))
        elif target[0] in ("Tuple", "List"):
            for one in target[3]:
                if one[0] == "Name":
                    self.originate(scope.names, one[3], reads)

    def _s_AnnAssign(self, node: Node, scope: Scope) -> None:
        if scope.kind == "class" and node[3][0] == "Name" and scope.owner is not None:
            scope.owner.annotations[node[3][3]] = (node[4], scope)
        if node[5] is not None:
            mark = len(self.reads)
            value = self.evaluate(node[5], scope)
            self._bind(node[3], value, self.read_since(mark), scope)

    def _s_AugAssign(self, node: Node, scope: Scope) -> None:
        target, mark = node[3], len(self.reads)
        before, value = self.evaluate(target, scope), self.evaluate(node[5], scope)
        if isinstance(before, list) and node[4] == "Add":
            items = self.items(value)
            if isinstance(items, Unknown):
                return self.assign(target, items, scope)
            if not safe_arithmetic("Add", before, items):
                raise Exhausted("a list that is too long")
            self.touch(before)
            before.extend(items)
            return None
        plain = is_array(before) and not isinstance(value, (Unknown, Symbol, Object))
        if plain and node[4] in IN_PLACE and before.ndim and bounded(before, value):
            self.touch(before)
            self.native(IN_PLACE[node[4]], [before, value])
            return None
        return self._bind(target, self.arithmetic(node[4], before, value), self.read_since(mark), scope)

    # targets

    # loops

    def _s_For(self, node: Node, scope: Scope) -> Done | None:
        mark = len(self.reads)
        items = self.items(self.evaluate(node[4], scope))
        reads = self.read_since(mark)
        if isinstance(items, Unknown):
            cause = items

            def once() -> Done | None:
                self.assign(node[3], cause, scope)
                return self.block(node[5], scope)

            return self._maybe_once(once, cause, node[5], scope)
        if copies_fields(self, node, items, scope):
            return None
        self.guards.append(reads)
        try:
            return self._each(node, items, 0, scope)
        finally:
            self.guards.pop()

    def _each(self, node: Node, items: list[Value], start: int, scope: Scope) -> Done | None:
        for at in range(start, len(items)):
            self.step()
            self.assign(node[3], items[at], scope)
            done = self.block(node[5], scope)
            if done is None or (done.kind == "continue"):
                continue
            if done.maybe:
                return self._loop_rest(done, lambda at=at: self._each(node, items, at + 1, scope))  # type: ignore[misc]
            return None if done.kind == "break" else done
        return self.block(node[6], scope) if node[6] else None

    def _loop_rest(self, done: Done, run: Thunk) -> Done | None:
        """The rest of a loop that may have ended."""
        cause = (
            done.value if isinstance(done.value, Unknown) else self.gap("a statement that ends a loop on some paths")
        )
        side = self.explore(run, cause)
        ended = None if done.kind == "break" else done._replace(maybe=False)
        return self._settle(Side(ended, None, {}), side, cause)

    def _maybe_once(self, run: Thunk, cause: Unknown, body: tuple[Node, ...], scope: Scope) -> Done | None:
        """A body that runs an unknown number of times: values that it writes are unknown afterwards."""
        if self.stage in BUILDING and reaches_parser(body, scope.names):
            self.unread_options.append(f"additions by a loop over something unknown at {self.place()}")
        side = self.explore(run, cause)
        if side.raised is not None:
            self.note(side.raised, cause)
            return None
        for container, name, before, after in side.writes.values():
            if name is MISSING:
                self.blur(container, cause)
            elif after is not MISSING and before is not after:
                self.put(container, name, self.join(before, after, cause))
        done = side.done
        return done._replace(maybe=True) if done is not None and done.kind == "return" else None

    def _s_While(self, node: Node, scope: Scope) -> Done | None:
        for _ in range(LOOPS):
            self.step()
            truth, reads = self._tested(node[3], scope)
            if truth is False:
                return self.block(node[5], scope) if node[5] else None
            if isinstance(truth, Unknown):
                return self._maybe_once(lambda: self._guarded(node[4], reads, scope), truth, node[4], scope)  # noqa: B023
            done = self._guarded(node[4], reads, scope)
            if done is None or done.kind == "continue":
                continue
            if done.maybe:
                return self._loop_rest(done, lambda: self._s_While(node, scope))
            return None if done.kind == "break" else done
        raise Exhausted("a loop that does not end")

    # try and with

    def _s_Try(self, node: Node, scope: Scope) -> Done | None:
        _, _, _, body, handlers, orelse, final = node
        mark = len(self.notes)
        try:
            done = self._tried(body, handlers, orelse, mark, scope)
        except Raised:
            if final:
                self.block(final, scope)
            raise
        if final:
            last = self.block(final, scope)
            done = last if last is not None else done
        return done

    def _tried(
        self, body: tuple[Node, ...], handlers: tuple[Node, ...], orelse: tuple[Node, ...], mark: int, scope: Scope
    ) -> Done | None:
        self.trying += 1
        guards, depth, current, line = len(self.guards), self.depth, self.scope, (self.line, self.end)
        ended: Raised | None = None
        done: Done | None = None
        try:
            done = self.block(body, scope)
        except Raised as raised:
            del self.guards[guards:]
            self.depth, self.scope = depth, current
            self.line, self.end = line
            ended = raised
            caught = self._caught_notes(handlers, mark, scope)
            done = self._caught(handlers, raised, caught, scope)
        finally:
            self.trying -= 1
        if ended is None:
            caught = self._caught_notes(handlers, mark, scope)
            done = self.block(orelse, scope) if done is None and orelse else done
        for note, handler in caught:
            done = self._may_handle(note, handler, done, scope)
        return done

    def _caught(
        self, handlers: tuple[Node, ...], raised: Raised, before: list[tuple[Note, Node]], scope: Scope
    ) -> Done | None:
        """The code after an error in a block. before: exceptions that the block may have raised earlier, with their
        handlers: then the error does not occur."""
        handler = self._handler(handlers, raised, scope)
        try:
            if handler is None:
                raise raised
            return self._handle(handler, raised, scope)
        except Raised as again:
            again.sure = again.sure and all(other is handler for _, other in before)
            raise

    def _may_handle(self, note: Note, handler: Node, done: Done | None, scope: Scope) -> Done | None:
        side = self.explore(lambda: self._handle(handler, note.raised, scope), note.cause)
        return self._settle(Side(done, None, {}), side, note.cause)

    def _caught_notes(self, handlers: tuple[Node, ...], mark: int, scope: Scope) -> list[tuple[Note, Node]]:
        """Exceptions that the body may have raised and a handler catches; one for each handler."""
        found: dict[int, tuple[Note, Node]] = {}
        for note in self.notes[mark:]:
            handler = self._handler(handlers, note.raised, scope)
            if handler is None:
                continue
            self.notes.remove(note)
            known = found.get(handler[1])
            cause = note.cause if known is None else both(known[0].cause, note.cause)
            found[handler[1]] = (note._replace(cause=cause), handler)
        return list(found.values())

    def _handler(self, handlers: tuple[Node, ...], raised: Raised, scope: Scope) -> Node | None:
        for handler in handlers:
            if handler[3] is None:
                return handler
            kinds = self.evaluate(handler[3], scope)
            for kind in kinds if isinstance(kinds, tuple) else (kinds,):
                if isinstance(kind, type) and issubclass(kind, BaseException) and isinstance(raised.error, kind):
                    return handler
                if isinstance(kind, (Symbol, Unknown)) and not raised.sure:
                    return handler
        return None

    def _handle(self, handler: Node, raised: Raised, scope: Scope) -> Done | None:
        if handler[4]:
            self.put(scope.names, handler[4], raised.error)
        scope.caught.append(raised)
        trying, self.trying = self.trying, max(self.trying - 1, 0)
        try:
            return self.block(handler[5], scope)
        finally:
            self.trying = trying
            scope.caught.pop()

    def _s_With(self, node: Node, scope: Scope) -> Done | None:
        entered: list[Value] = []
        for expression, target in node[3]:
            manager = self.evaluate(expression, scope)
            value: Value = manager if isinstance(manager, Unknown) else self.gap("what a context gives")
            if isinstance(manager, Object):
                method = manager.cls.find("__enter__")
                value = self.call(method, [manager], {}) if method is not MISSING else value
                entered.append(manager)
            elif isinstance(manager, list) and manager:
                value = manager[0]
            if target is not None:
                self.assign(target, value, scope)
        done = self.block(node[4], scope)
        for manager in reversed(entered):
            method = manager.cls.find("__exit__")
            if method is not MISSING:
                self.call(method, [manager, None, None, None], {})
        return done

    # definitions

    def _s_FunctionDef(self, node: Node, scope: Scope) -> None:
        function = self.function(node, scope, node[3], node[4])
        function.owner = scope.owner
        made: Value = function
        for decorator in reversed(node[6]):
            made = self.decorate(self.evaluate(decorator, scope), made)
        self.put(scope.names, node[3], made)

    def _s_ClassDef(self, node: Node, scope: Scope) -> None:
        made = self.define_class(node, scope)
        for decorator in reversed(node[7]):
            made = self.decorate(self.evaluate(decorator, scope), made)
        self.put(scope.names, node[3], made)

    def define_class(self, node: Node, scope: Scope) -> Value:
        """A class from its statement."""
        raise NotImplementedError

    def decorate(self, decorator: Value, value: Value) -> Value:
        """The result of a decorator for a function or class."""
        raise NotImplementedError


def _end(node: Node) -> int:
    """The last line of a statement; for a compound statement that of its head."""
    if node[0] in ("If", "While"):
        return int(node[3][2]) or node[1]
    if node[0] == "For":
        return int(node[4][2]) or node[1]
    return node[1] if node[0] in ("Try", "With") else int(node[2])
