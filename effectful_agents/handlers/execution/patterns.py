"""How the policy writes `match`: what a pattern reads, and what it compares with, is read by guards.

The interpreter reads the attributes that a class pattern names, and the names that it writes, with its own powers. So
each pattern is written as a condition: `case Point(x=0, y=y)` becomes

    case subject if (parts := _instance_(subject, Point, 0, ("x", "y"))) is not None and parts[0] == 0 and …

with variables that no code can name. What a pattern binds is bound when all of it has matched, as elsewhere.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterable
from typing import Any, override

from RestrictedPython.transformer import RestrictingNodeTransformer

from effectful_agents.handlers.execution.names import is_attribute
from effectful_agents.handlers.execution.nodes import as_statements, at, call

__all__ = ["PatternPolicy"]


class PatternPolicy(RestrictingNodeTransformer):
    """The part of the policy that is about `match`."""

    @override
    def gen_tmp_name(self) -> str:
        # A name like those of special methods is no member of an enumeration, and nobody's private name.
        return f"_{super().gen_tmp_name()}__"

    def visit_Match(self, node: ast.Match) -> Any:
        """Each case as a condition, and the variables of the conditions before and after."""
        self._check_patterns(node)
        conditions = _Conditions(self, node)
        node.subject = self.visit(node.subject)
        node.cases = [self._case(conditions, case) for case in node.cases]
        names = conditions.names
        first = ast.Assign([ast.Name(name, ast.Store()) for name in names], ast.Constant(None))
        last = ast.Delete([ast.Name(name, ast.Del()) for name in names])
        return [at(node, first), node, at(node, last)] if names else node

    def _case(self, conditions: _Conditions, case: ast.match_case) -> ast.match_case:
        tests, pattern = conditions.of_case(case.pattern)
        if case.guard is not None:
            tests.append(self.visit(case.guard))
        guard = _all(tests) if tests else None
        body = [one for statement in case.body for one in as_statements(self.visit(statement))]
        return ast.match_case(pattern, guard, body)

    def _check_patterns(self, node: ast.Match) -> None:
        """Have the compiler say what is wrong with the patterns, while it can see them."""
        cases = [
            ast.match_case(copy.deepcopy(case.pattern), case.guard and ast.Constant(True), [ast.Pass()])
            for case in node.cases
        ]
        alone = ast.Module([at(node, ast.Match(ast.Constant(None), cases))], [])
        try:
            builtins.compile(ast.fix_missing_locations(alone), "<match>", "exec", dont_inherit=True)
        except SyntaxError as error:
            self.error(node, f"{error.msg}.")


class _Conditions:
    """The patterns of one `match` as conditions.

    Args:
        policy: What visits the expressions in them.
        where: The statement.
    """

    def __init__(self, policy: RestrictingNodeTransformer, where: ast.Match) -> None:
        self.policy = policy
        self.where: ast.AST = where
        self.names: list[str] = []
        """The variables that the conditions need."""
        self._bound: dict[str, str] = {}

    def of_case(self, pattern: ast.pattern) -> tuple[list[ast.expr], ast.pattern]:
        """The conditions of a case, and the pattern that is left."""
        self.where = pattern
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            self.policy.check_name(pattern, pattern.name)
            return [], pattern
        self._bound = {}
        subject = self._new_name()
        tests = self._tests(pattern, ast.Name(subject, ast.Load()))
        if self._bound:
            tests.append(self._list(ast.NamedExpr(_stored(name), _loaded(one)) for name, one in self._bound.items()))
        return tests, at(pattern, ast.MatchAs(name=subject))

    def _new_name(self) -> str:
        self.names.append(self.policy.gen_tmp_name())
        return self.names[-1]

    def _list(self, elements: Iterable[ast.expr]) -> ast.expr:
        return at(self.where, ast.List(list(elements), ast.Load()))  # it has one at least, and so is true

    def _tests(self, pattern: ast.pattern, subject: ast.expr) -> list[ast.expr]:
        """What has to be true of the value of an expression, in this order."""
        self.where = pattern
        return getattr(self, f"_{type(pattern).__name__}")(pattern, subject)

    def _capture(self, pattern: ast.pattern, name: str | None, subject: ast.expr) -> list[ast.expr]:
        self.policy.check_name(pattern, name)
        if name is None:
            return []
        one = self._bound.get(name)
        if one is None:
            one = self._bound[name] = self._new_name()
        return [self._list([ast.NamedExpr(_stored(one), subject)])]

    def _parts(self, guard: str, patterns: list[ast.pattern], subject: ast.expr, *args: ast.expr) -> list[ast.expr]:
        """A guard gives the parts of a value, or None, and each has a pattern."""
        name = self._new_name()
        found = ast.NamedExpr(_stored(name), call(self.where, guard, subject, *args))
        tests: list[ast.expr] = [at(self.where, ast.Compare(found, [ast.IsNot()], [ast.Constant(None)]))]
        for number, pattern in enumerate(patterns):
            tests += self._tests(pattern, ast.Subscript(_loaded(name), ast.Constant(number), ast.Load()))
        return tests

    def _MatchValue(self, pattern: ast.MatchValue, subject: ast.expr) -> list[ast.expr]:
        return [at(pattern, ast.Compare(subject, [ast.Eq()], [self.policy.visit(pattern.value)]))]

    def _MatchSingleton(self, pattern: ast.MatchSingleton, subject: ast.expr) -> list[ast.expr]:
        return [at(pattern, ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]))]

    def _MatchSequence(self, pattern: ast.MatchSequence, subject: ast.expr) -> list[ast.expr]:
        stars = [n for n, one in enumerate(pattern.patterns) if isinstance(one, ast.MatchStar)]
        star = ast.Constant(stars[0] if stars else None)
        return self._parts("_sequence_", pattern.patterns, subject, ast.Constant(len(pattern.patterns)), star)

    def _MatchStar(self, pattern: ast.MatchStar, subject: ast.expr) -> list[ast.expr]:
        return self._capture(pattern, pattern.name, subject)

    def _MatchMapping(self, pattern: ast.MatchMapping, subject: ast.expr) -> list[ast.expr]:
        keys = at(pattern, ast.Tuple([self.policy.visit(key) for key in pattern.keys], ast.Load()))
        rest = [] if pattern.rest is None else [at(pattern, ast.MatchStar(pattern.rest))]
        return self._parts("_mapping_", [*pattern.patterns, *rest], subject, keys, ast.Constant(bool(rest)))

    def _MatchClass(self, pattern: ast.MatchClass, subject: ast.expr) -> list[ast.expr]:
        for name in pattern.kwd_attrs:
            if not is_attribute(name):
                self.policy.error(pattern, f"`{name}` is not available here.")
        names = at(pattern, ast.Tuple([ast.Constant(name) for name in pattern.kwd_attrs], ast.Load()))
        count = ast.Constant(len(pattern.patterns))
        patterns = [*pattern.patterns, *pattern.kwd_patterns]
        return self._parts("_instance_", patterns, subject, self.policy.visit(pattern.cls), count, names)

    def _MatchAs(self, pattern: ast.MatchAs, subject: ast.expr) -> list[ast.expr]:
        tests = [] if pattern.pattern is None else self._tests(pattern.pattern, subject)
        return [*tests, *self._capture(pattern, pattern.name, subject)]

    def _MatchOr(self, pattern: ast.MatchOr, subject: ast.expr) -> list[ast.expr]:
        ways = [self._tests(one, subject) for one in pattern.patterns]
        return [at(pattern, ast.BoolOp(ast.Or(), [_all(tests) for tests in ways]))]


def _all(tests: list[ast.expr]) -> ast.expr:
    return ast.BoolOp(ast.And(), tests) if len(tests) > 1 else tests[0] if tests else ast.Constant(True)


def _stored(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def _loaded(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
