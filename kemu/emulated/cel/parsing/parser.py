"""From text to a syntax tree: the grammar of CEL, with cel-go's limits and messages.

cel-go's parser is made by ANTLR. Messages name what ANTLR would, and one token too many or too few is passed over as
ANTLR does; what ANTLR says of the text behind the first place that it cannot mend is left out.
"""

from __future__ import annotations

from typing import NoReturn

from kemu.emulated.cel import numbers
from kemu.emulated.cel.errors import CompileError, Issue
from kemu.emulated.cel.parsing import literals, macros, stacks
from kemu.emulated.cel.parsing.syntax import (
    Call,
    Entry,
    Field,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Missing,
    Node,
    Select,
    Struct,
)
from kemu.emulated.cel.parsing.texts import NOWHERE, Text
from kemu.emulated.cel.parsing.tokens import EOF, Token, scan
from kemu.emulated.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

MAX_LENGTH = 100_000
MAX_DEPTH = 250

_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_LITERALS = ("true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES")
_BEGINNING = ("[", "{", "(", ".", "-", "!", *_LITERALS, "IDENTIFIER")
_ITEM_BEGINNING = ("[", "{", "(", ".", "-", "!", "?", *_LITERALS, "IDENTIFIER")
_LIST_BEGINNING = ("[", "]", "{", "(", ".", ",", *_ITEM_BEGINNING[4:])
_MAP_BEGINNING = ("[", "{", "}", "(", ".", ",", *_ITEM_BEGINNING[4:])
_ARGUMENTS_BEGINNING = ("[", "{", "(", ")", ".", "-", "!", *_LITERALS, "IDENTIFIER")
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}


class _Stop(Exception):
    """Nothing behind this place is read."""


def parse(text: Text, available: macros.Macros) -> Node:
    """The tree of an expression, with macros expanded. Raises `CompileError`."""
    content = text.content
    if len(content) > MAX_LENGTH:
        message = f"expression code point size exceeds limit: size: {len(content)}, limit {MAX_LENGTH}"
        issue = Issue(*NOWHERE, message)
        raise CompileError(text.show([issue]), [issue])
    with stacks.room():
        parser = _Parser(text, available)
        tree = parser.run()
    if parser.issues:
        raise CompileError(text.show(parser.issues), parser.issues)
    return tree


class _Parser:
    def __init__(self, text: Text, available: macros.Macros) -> None:
        self.text = text
        self.issues: list[Issue] = []
        self.macros = available
        self.copies = macros.Copies()
        self.tokens, strays = scan(text.content)
        for offset, stray in strays:
            self._syntax_error(offset, f"token recognition error at: '{stray}'")
        self.at = 0
        self.token = self.tokens[0]
        self.depth = 0

    def run(self) -> Node:
        try:
            tree = self.expression()
            if self.token.kind != EOF:
                if self._following().kind == EOF:
                    self._extraneous((EOF,))
                else:
                    self._mismatched((EOF,))
        except _Stop:
            return Missing(-1)
        return tree

    # Messages

    def issue(self, offset: int, message: str) -> Node:
        self.issues.append(Issue(*self.text.place(offset), message))
        return Missing(offset)

    def _syntax_error(self, offset: int, message: str) -> None:
        self.issue(offset, f"Syntax error: {message}")

    def _mismatched(self, expected: tuple[str, ...]) -> NoReturn:
        self._syntax_error(self.token.offset, f"mismatched input {_shown(self.token)} expecting {_set(expected)}")
        raise _Stop

    def _extraneous(self, expected: tuple[str, ...]) -> None:
        self._syntax_error(self.token.offset, f"extraneous input {_shown(self.token)} expecting {_set(expected)}")
        self._next()

    def _no_alternative(self, begun: str) -> NoReturn:
        token = self.token
        if token.kind in ("true", "false", "null") and len(begun) == 1:
            message = f"mismatched input '{token.text}' expecting IDENTIFIER"
        else:
            message = f"no viable alternative at input '{begun}{'' if token.kind == EOF else token.text}'"
        self._syntax_error(token.offset, message)
        raise _Stop

    def _raise_height(self, node: Node, *inner: Node) -> Node:
        node.height = 1 + max(part.height for part in inner)
        if node.height > MAX_DEPTH:
            self.issues.append(Issue(*NOWHERE, "max recursion depth exceeded"))
            raise _Stop
        return node

    # Tokens

    def _next(self) -> Token:
        token = self.token
        if self.at < len(self.tokens) - 1:
            self.at += 1
            self.token = self.tokens[self.at]
        return token

    def _following(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def _match(self, kind: str, *, follows: tuple[str, ...] = ()) -> Token:
        """Read a token of `kind`. `follows`: what may come behind it, for a token that is missing."""
        if self.token.kind == kind:
            return self._next()
        if self._following().kind == kind:
            self._extraneous((kind,))
            return self._next()
        if self.token.kind in follows:
            self._syntax_error(self.token.offset, f"missing '{kind}' at {_shown(self.token)}")
            return Token(kind, kind, self.token.offset)
        return self._mismatched((kind,))

    # Grammar, from the loosest to the tightest

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.issues.append(Issue(*NOWHERE, f"expression recursion limit exceeded: {MAX_DEPTH}"))
            raise _Stop
        node = self._logic("||", "_||_")
        if self.token.kind == "?":
            operator = self._next()
            first = self._logic("||", "_||_")
            self._match(":")
            second = self.expression()
            call = self.call(operator.offset, "_?_:_", None, [node, first, second])
            node = self._raise_height(call, node, first, second)
        self.depth -= 1
        return node

    def _logic(self, operator: str, function: str) -> Node:
        """A chain of ``||``, or of ``&&`` within it, as a balanced tree."""
        terms, offsets = [self._term(operator)], []
        while self.token.kind == operator:
            offsets.append(self._next().offset)
            terms.append(self._term(operator))
        if not offsets:
            return terms[0]
        tree = self._balanced(function, terms, offsets, 0, len(offsets) - 1)
        tree.height = max(term.height for term in terms)
        return tree

    def _term(self, operator: str) -> Node:
        return self._logic("&&", "_&&_") if operator == "||" else self._relation()

    def _balanced(self, function: str, terms: list[Node], offsets: list[int], low: int, high: int) -> Node:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else self._balanced(function, terms, offsets, low, middle - 1)
        right = terms[middle + 1] if middle == high else self._balanced(function, terms, offsets, middle + 1, high)
        return Call(offsets[middle], function, None, [left, right])

    def _relation(self) -> Node:
        node = self._sum()
        while (function := _RELATIONS.get(self.token.kind)) is not None:
            operator = self._next()
            right = self._sum()
            node = self._raise_height(self.call(operator.offset, function, None, [node, right]), node, right)
        return node

    def _sum(self) -> Node:
        node = self._product()
        while (function := _SUMS.get(self.token.kind)) is not None:
            operator = self._next()
            right = self._product()
            node = self._raise_height(self.call(operator.offset, function, None, [node, right]), node, right)
        return node

    def _product(self) -> Node:
        node = self._unary()
        while (function := _PRODUCTS.get(self.token.kind)) is not None:
            operator = self._next()
            right = self._unary()
            node = self._raise_height(self.call(operator.offset, function, None, [node, right]), node, right)
        return node

    def _unary(self) -> Node:
        kind = self.token.kind
        if kind == "!" or (kind == "-" and self._following().kind not in ("NUM_INT", "NUM_FLOAT")):
            first = self._next()
            count = 1
            while self.token.kind == kind:
                self._next()
                count += 1
            if kind == "-" and self.token.kind not in _BEGINNING:
                self._no_alternative("-" * count)
            operand = self._member()
            if count % 2 == 0:
                return operand
            node = self.call(first.offset, "!_" if kind == "!" else "-_", None, [operand])
            node.height = operand.height
            return node
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while self.token.kind in (".", "["):
            node = self._index(node) if self.token.kind == "[" else self._select(node)
        return node

    def _index(self, operand: Node) -> Node:
        bracket = self._next()
        function = "_[_]"
        if self.token.kind == "?":
            self._next()
            function = "_[?_]"
        elif self.token.kind not in _ITEM_BEGINNING:
            self._begin(_ITEM_BEGINNING)
        index = self.expression()
        self._match("]", follows=_AFTER_MEMBER)
        return self._raise_height(self.call(bracket.offset, function, None, [operand, index]), operand, index)

    def _select(self, operand: Node) -> Node:
        dot = self._next()
        optional = self.token.kind == "?"
        if optional:
            self._next()
        if self.token.kind == "ESC_IDENTIFIER":
            self.issue(self._next().offset, "unsupported syntax: '`'")
            return Select(dot.offset, operand, "")
        if self.token.kind != "IDENTIFIER":
            self._no_alternative(".?" if optional else ".")
        name = self._next()
        if optional:
            call = Call(dot.offset, "_?._", None, [operand, Literal(name.offset, name.text)])
            return self._raise_height(call, operand)
        if self.token.kind == "(":
            opening = self._next()
            arguments = self._arguments()
            call_or_macro = self.call(opening.offset, name.text, operand, arguments)
            return self._raise_height(call_or_macro, operand, *arguments)
        return self._raise_height(Select(dot.offset, operand, name.text), operand)

    def _arguments(self) -> list[Node]:
        """Arguments behind the opening parenthesis, and the closing one."""
        arguments: list[Node] = []
        if self.token.kind not in _ARGUMENTS_BEGINNING:
            self._begin(_ARGUMENTS_BEGINNING)
        if self.token.kind != ")":
            arguments.append(self.expression())
            while self.token.kind == ",":
                self._next()
                arguments.append(self.expression())
        self._match(")", follows=_AFTER_MEMBER)
        return arguments

    def _begin(self, expected: tuple[str, ...]) -> None:
        """Pass over a token that begins nothing, if the next one does."""
        if self._following().kind in expected:
            self._extraneous(expected)
        else:
            self._mismatched(expected)

    def _primary(self) -> Node:
        if self.token.kind not in _BEGINNING or self.token.kind == "!":
            self._begin(_BEGINNING)
        token = self.token
        match token.kind:
            case "(":
                self._next()
                node = self.expression()
                self._match(")", follows=_AFTER_MEMBER)
                return node
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "IDENTIFIER" | ".":
                return self._name()
            case _:
                return self._literal()

    def _name(self) -> Node:
        start = self.token
        dotted = start.kind == "."
        if dotted:
            self._next()
            if self.token.kind != "IDENTIFIER":
                self._no_alternative(".")
        ahead, message = 1, self.token.text
        while self._following(ahead).kind == "." and self._following(ahead + 1).kind == "IDENTIFIER":
            message += "." + self._following(ahead + 1).text
            ahead += 2
        if self._following(ahead).kind == "{":
            for _ in range(ahead):
                self._next()
            return self._struct("." * dotted + message)
        token = self._next()
        name = "." * dotted + token.text
        if self.token.kind == "(":
            opening = self._next()
            arguments = self._arguments()
            if token.text in _RESERVED:
                return self.issue(start.offset, f"reserved identifier: {token.text}")
            node = self.call(opening.offset, name, None, arguments)
            node.height = max((argument.height for argument in arguments), default=0)
            return node
        if token.text in _RESERVED:
            return self.issue(start.offset, f"reserved identifier: {token.text}")
        return Ident(token.offset, name)

    def _list(self) -> Node:
        bracket = self._next()
        elements: list[Node] = []
        optional: list[int] = []
        trailing = False
        if self.token.kind in _ITEM_BEGINNING:
            trailing = self._items("]", lambda: self._element(elements, optional))
        elif self.token.kind == ",":
            self._next()
            trailing = True
        if self.token.kind != "]" and not trailing:
            self._sync(("]", ",") if elements else _LIST_BEGINNING)
            if not elements and self.token.kind in _ITEM_BEGINNING:
                self._items("]", lambda: self._element(elements, optional))
            elif self.token.kind == ",":
                self._next()
        self._match("]", follows=_AFTER_MEMBER)
        node = ListOf(bracket.offset, elements, frozenset(optional))
        node.height = max((element.height for element in elements), default=0)
        return node

    def _sync(self, expected: tuple[str, ...]) -> None:
        if self._following().kind in expected:
            self._extraneous(expected)
        else:
            self._mismatched(expected)

    def _items(self, closing: str, read: object) -> bool:
        """Items with commas between them; whether the last token read is a comma."""
        assert callable(read)
        read()
        while self.token.kind == ",":
            following = self._following().kind
            self._next()
            if following == closing or following not in (*_ITEM_BEGINNING, "ESC_IDENTIFIER"):
                return True
            read()
        return False

    def _element(self, elements: list[Node], optional: list[int]) -> None:
        if self.token.kind == "?":
            self._next()
            optional.append(len(elements))
        elements.append(self.expression())

    def _map(self) -> Node:
        brace = self._next()
        entries: list[Entry] = []
        trailing = False
        if self.token.kind in _ITEM_BEGINNING:
            trailing = self._items("}", lambda: self._entry(entries))
        elif self.token.kind == ",":
            self._next()
            trailing = True
        if self.token.kind != "}" and not trailing:
            self._sync(("}", ",") if entries else _MAP_BEGINNING)
            if not entries and self.token.kind in _ITEM_BEGINNING:
                self._items("}", lambda: self._entry(entries))
            elif self.token.kind == ",":
                self._next()
        self._match("}", follows=_AFTER_MEMBER)
        node = MapOf(brace.offset, entries)
        node.height = max((max(entry.key.height, entry.value.height) for entry in entries), default=0)
        return node

    def _entry(self, entries: list[Entry]) -> None:
        optional = self.token.kind == "?"
        if optional:
            self._next()
        key = self.expression()
        colon = self._match(":")
        entries.append(Entry(colon.offset, key, self.expression(), optional))

    def _struct(self, name: str) -> Node:
        brace = self._next()
        fields: list[Field] = []
        trailing = False
        beginning = ("?", "IDENTIFIER", "ESC_IDENTIFIER")
        if self.token.kind in beginning:
            trailing = self._items("}", lambda: self._field(fields))
        elif self.token.kind == ",":
            self._next()
            trailing = True
        if self.token.kind != "}" and not trailing:
            self._sync(("}", ",")) if fields else self._sync(("}", ",", *beginning))
        self._match("}", follows=_AFTER_MEMBER)
        node = Struct(brace.offset, name, fields)
        node.height = max((field.value.height for field in fields), default=0)
        return node

    def _field(self, fields: list[Field]) -> None:
        optional = self.token.kind == "?"
        if optional:
            self._next()
        if self.token.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            self._sync(("IDENTIFIER", "ESC_IDENTIFIER"))
        name = self._next()
        colon = self._match(":")
        value = self.expression()
        if name.kind == "ESC_IDENTIFIER":
            self.issue(name.offset, "unsupported syntax: '`'")
        fields.append(Field(colon.offset, name.text, value, optional))

    def _literal(self) -> Node:
        start = self.token
        sign = ""
        if start.kind == "-":
            sign = self._next().text
        token = self._next()
        offset, text = start.offset, token.text
        match token.kind:
            case "NUM_INT":
                number = int(text, 16) if text.startswith("0x") else int(text) if len(text) < 40 else UINT_MAX
                number = -number if sign else number
                if not INT_MIN <= number <= INT_MAX:
                    return self.issue(offset, "invalid int literal")
                return Literal(offset, number)
            case "NUM_UINT":
                digits = text[:-1]
                number = (
                    int(digits, 16) if digits.startswith("0x") else int(digits) if len(digits) < 40 else UINT_MAX + 1
                )
                if number > UINT_MAX:
                    return self.issue(offset, "invalid uint literal")
                return Literal(offset, Uint(number))
            case "NUM_FLOAT":
                double = numbers.parse_double(sign + text)
                return self.issue(offset, "invalid double literal") if double is None else Literal(offset, double)
            case "STRING" | "BYTES":
                try:
                    return Literal(
                        offset, literals.string(text) if token.kind == "STRING" else literals.byte_string(text[1:])
                    )
                except ValueError as error:
                    self.issue(offset, str(error))
                    return Literal(offset, "")
            case _:
                return Literal(offset, {"true": True, "false": False, "null": None}[token.kind])

    def call(self, offset: int, function: str, target: Node | None, arguments: list[Node]) -> Node:
        """A call, or what the macro of this name makes of it."""
        expand = self.macros.find(function, len(arguments), target is not None)
        if expand is None:
            return Call(offset, function, target, arguments)
        try:
            expanded = expand(macros.Builder(offset, self.copies), target, arguments)
        except macros.MacroError as error:
            return self.issue(error.offset if error.offset >= 0 else offset, error.message)
        return Call(offset, function, target, arguments) if expanded is None else expanded


#: What may come behind a closing bracket.
_AFTER_MEMBER = (EOF, ".", "[", ")", "]", "}", ",", ":", "?", "&&", "||", "+", "-", "*", "/", "%", *_RELATIONS)


def _shown(token: Token) -> str:
    text = token.text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"'{text}'"


def _set(kinds: tuple[str, ...]) -> str:
    shown = [kind if kind.isupper() or kind.startswith("NUM") or kind == EOF else f"'{kind}'" for kind in kinds]
    return shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"
