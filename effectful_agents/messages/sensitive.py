"""Secrets and personal data in texts: how they are recognized."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["PATTERNS", "found_in", "hidden", "is_secret_name", "replaced", "without_secrets"]


# None of them takes longer than in proportion to the text: what repeats is bounded.
PATTERNS: Mapping[str, str] = {
    "KEY": r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,10000}"
    r"-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
    "TOKEN": r"(?<![A-Za-z0-9])(?:[sS][kK]-[A-Za-z0-9_-]{16,200}|gh[pousr]_[A-Za-z0-9]{20,100}"
    r"|github_pat_[A-Za-z0-9_]{20,200}|xox[abeoprs]-[A-Za-z0-9-]{10,200}|xapp-[A-Za-z0-9-]{20,200}|A[KS]IA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}"
    r"|gl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_-]{20,60}|[sr]k_(?:live|test)_[A-Za-z0-9]{10,200}"
    r"|whsec_[A-Za-z0-9+/=]{20,100}|(?:hf|gsk|npm|r8)_[A-Za-z0-9]{30,100}|pypi-[A-Za-z0-9_-]{30,300}"
    r"|(?:xai|pplx|nvapi|tvly)-[A-Za-z0-9_-]{30,120}|ya29\.[A-Za-z0-9_-]{20,500}|GOCSPX-[A-Za-z0-9_-]{20,60}"
    r"|SG\.[A-Za-z0-9_-]{16,60}\.[A-Za-z0-9_-]{16,100}|hvs\.[A-Za-z0-9_-]{24,200}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}|lin_api_[A-Za-z0-9]{30,60}|ATATT3x[A-Za-z0-9_=-]{30,300}"
    r"|\d{8,10}:AA[A-Za-z0-9_-]{33}|hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,100}"
    r"|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/[A-Za-z0-9_-]{20,100}|(?<=[?&]key=)[A-Za-z0-9_-]{16,200}"
    r"|eyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000})",
    "EMAIL": r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b",
    "IBAN": r"\b[A-Za-z]{2}\d{2}(?:[ \u00a0]?[A-Za-z0-9]){11,30}(?![A-Za-z0-9])",
    "CARD": r"(?<!\d)\d(?:[ \u00a0\n-]{0,2}\d){12,22}",
    "PHONE": r"(?<![\w+])\+\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,6}(?!\w)",
}
"""What can be recognized, by name: the pattern of each. A card and an account also need the right check digits."""


def replaced(text: str, patterns: Iterable[tuple[str, re.Pattern[str]]], put: Callable[[str, str], str]) -> str:
    """The text with something else in the place of each datum that a pattern finds.

    Args:
        text: The text.
        patterns: Names and patterns; those named as in `PATTERNS` need the check digits that are said there.
        put: Gets the name and the datum, and says what stands in its place.

    >>> replaced("To ann@example.org", [("EMAIL", re.compile(PATTERNS["EMAIL"]))], lambda kind, datum: kind.lower())
    'To email'
    """
    for kind, pattern in patterns:
        text = pattern.sub(lambda found, kind=kind: _put_one(kind, found[0], put), text)
    return text


def found_in(text: str, kind: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where a pattern finds data in a text: from where to where.

    >>> list(found_in("To ann@example.org", "EMAIL", re.compile(PATTERNS["EMAIL"])))
    [(3, 18)]
    """
    for found in pattern.finditer(text):
        length = len(_datum(kind, found[0]))
        if length:
            yield found.start(), found.start() + length


def _put_one(kind: str, found: str, put: Callable[[str, str], str]) -> str:
    datum = _datum(kind, found)
    return f"{put(kind, datum)}{found[len(datum) :]}" if datum else found


def _datum(kind: str, found: str) -> str:
    check = _CHECKS.get(kind)
    return found if check is None else _longest(found, check)


def _longest(text: str, check: Callable[[str], bool]) -> str:
    """The longest beginning of a text that passes a check; what follows a number may look like a part of it."""
    ends = [end for end in range(len(text), 0, -1) if text[end - 1].isalnum()]
    return next((text[:end] for end in ends if check(text[:end])), "")


def _is_card(digits: str) -> bool:
    """Whether digits have the check digit of a card's number."""
    numbers = [int(digit) for digit in re.sub(r"\D", "", digits)]
    doubled = [sum(divmod(2 * number, 10)) for number in numbers[-2::-2]]
    return 13 <= len(numbers) <= 19 and len(set(numbers)) > 1 and (sum(numbers[::-2]) + sum(doubled)) % 10 == 0


def _is_account(text: str) -> bool:
    """Whether a text has the check digits of an IBAN."""
    compact = re.sub(r"\s", "", text).upper()
    moved = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


_CHECKS: Mapping[str, Callable[[str], bool]] = {"CARD": _is_card, "IBAN": _is_account}


# --- names of secrets -------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret(?!ar)|credential|authori[sz]ation|cookie"
    r"|(?:api|access|private|sign|signing|encrypt|encryption|decryption|master|auth|account|client|licen[sc]e|shared"
    r"|subscription|session|ssh|pgp|gpg|rsa|aes|hmac|fernet|webhook|deploy|storage|service)_?keys?(?:_|$)"
    r"|(?:api|access|private)_?key"
    r"|(?:^|_)(?:pwds?|jwts?|t?otp|dsn|creds?|bearer|cvv|cvc|mnemonic|seed_phrase|conn(?:ection)?_?str(?:ing)?)(?:_|$)"
    r"|(?:^|_)(?:auth|authentication|sig|amz_signature|x_auth)(?:_headers?)?$"
    r"|token(?:_value|_string)?$"
    r"|(?:^|(?:access|refresh|auth|api|bearer|id|session|user|client|push|device|csrf|xsrf|oauth)_)tokens$"
    r"|(?:^|_)(?:session|sess)_?ids?$|(?:^|_)(?:phpsessid|jsessionid|sid)$"
    r"|^(?:pin|pass|pins)$|(?:^|_)(?:user|card|sim|new|old|account|door)_pin$|(?:^|_)pin_code$"
    r"|(?:^|_)(?:db|user|smtp|ftp|sql|mysql|pg|root|admin|http|proxy|key|ssh|mail|email|my)_pass$"
    r"|(?:^|_)(?:mfa|auth|recovery|backup)_codes?$"
)
_NO_SECRET_NAME = re.compile(
    r"(?:^|_)(?:page|next|continuation|pagination|cursor|sync|stop|eos|bos|pad|unk|mask|special|first|last|per|new)_token$"
)


def is_secret_name(name: str) -> bool:
    """Whether what has such a name is usually a secret.

    >>> [name for name in ("api_key", "X-Auth-Token", "sessionId", "max_tokens", "author") if is_secret_name(name)]
    ['api_key', 'X-Auth-Token', 'sessionId']
    """
    words = (word.lower() for word in _WORD.findall(name))
    joined = "_".join(word for word in words if word != "v")  # the `v` of a version
    return _SECRET_NAME.search(joined) is not None and _NO_SECRET_NAME.search(joined) is None


# --- secrets alone ----------------------------------------------------------------------------------------------------

_SECRETS = [
    *((kind, re.compile(PATTERNS[kind])) for kind in ("KEY", "TOKEN")),
    ("KEY", re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----[\s\S]*")),  # one that was cut off
]

# What repeats is bounded or gives nothing back, and where one search ends the next begins: the time stays linear.
_HEAD = re.compile(
    r"""(?<![\w.-])(?P<name>(?:(?:api|access|private|secret|signing|encryption)[ ](?=keys?\b))?[\w.-]++)"""
    r"""(?:(?P<quote>\\{0,8}["'])?\s{0,200}(?:(?P<sep>:=|=>|={1,3}|:(?!//)|\|(?!\|)|>)\s{0,200}|(?P<blank>(?<=\s)(?=[^\s-])))"""
    r"""|\\{0,8}["']\s{0,9},\s{0,9}(?:\\{0,8}["']value\\{0,8}["']\s{0,9}:\s{0,9}|(?=b?\\{0,8}["'])))""",
    re.IGNORECASE,
)
_MARK = r"\[[A-Za-z]{1,20}\]"
_PLAIN = rf"""(?:{_MARK}|[^\s,&)\]}}"'\\]|\\(?!\\{{0,8}}["']))"""
_VALUE = re.compile(
    rf"""(?:(?:bearer|basic|token|apikey|negotiate)[ \t]{{1,9}}(?=[^\s,&)\]}}]))?"""
    rf"""(?:(?:'''(?:(?!''')[\s\S])*+(?:''')?|\"\"\"(?:(?!\"\"\")[\s\S])*+(?:\"\"\")?"""
    rf"""|b?"(?:[^"\\\n]|\\.)*+"?|b?'(?:[^'\\\n]|\\.)*+'?"""
    rf"""|(?P<escaped>\\{{1,8}}["'])(?:(?!(?<!\\)(?P=escaped))[^\n])*+(?:(?P=escaped))?){_PLAIN}*+|{_PLAIN}++)""",
    re.IGNORECASE,
)
_LISTED = re.compile(rf"(?!{_MARK})[\[({{]{{1,3}}[^\])}}\n]{{0,5000}}[\])}}]{{0,3}}")
_OF_HEADER = {
    "authorization": re.compile(
        r"""(?:[A-Za-z][\w-]{0,30}[ \t]{1,9}(?=[^\s"',]))?(?:="[^"\n]{0,1000}"|[^\s"',])++"""
        r"""(?:,[ \t]{0,9}[\w-]{1,40}=(?:"[^"\n]{0,1000}"|[^\s"',]{1,1000})){0,40}"""
    ),
    "cookie": re.compile(r"""[^\s;"',][^\s;"',]*+(?:;[ \t]{0,9}[^\s;"',]++)*+"""),
}
_BEARER = re.compile(r"\b(bearer|basic)\s{1,9}([A-Za-z0-9._~+/=-]{8,5000})", re.IGNORECASE)
_OF_CURL = re.compile(r"""(?<!\S)((?:-u|--user)(?:\s{1,9}|=)["']?)[^\s:"']{1,200}:[^\s"']{1,500}""")
_IN_ADDRESS = re.compile(
    r"""(?<=://)[^\s/@:?#"'<>]{0,200}:(?!\d{1,5}/)(?:[^\s/"'<>]{1,500}(?=@)|[^\s@"'<>]{1,500}+(?=@))"""
    r"""|(?:(?<=http://)|(?<=https://))[^\s/@:?#"'<>]{1,500}+(?=@)""",
    re.IGNORECASE,
)


def without_secrets(text: str, mark: str = "[secret]", is_secret: Callable[[str], bool] | None = None) -> str:
    """The text with a mark in the place of what looks like a secret, or is named like one.

    Those are keys and tokens of usual forms, passwords in addresses, and whatever stands behind a name such as
    `password=`. Others pass: words of a password behind its first, for example.

    Args:
        text: The text.
        mark: What stands in the place of a secret.
        is_secret: Whether a value that is named like a secret, without its quotes, is one; None where each is. The
            quotes stay where it is given, so that JSON stays JSON.

    >>> without_secrets("login(user='ann', password='hunter2') by sk-abcdefghijklmnop1234")
    "login(user='ann', password=[secret]) by [secret]"
    >>> without_secrets("postgresql://ann:hunter2@db/mail")
    'postgresql://[secret]@db/mail'
    >>> without_secrets("Cookie: theme=dark; session=a1b2c3")
    'Cookie: [secret]'
    >>> without_secrets('{"password": "hunter2", "token": "a word"}', is_secret=lambda value: "2" in value)
    '{"password": "[secret]", "token": "a word"}'
    """
    return _settled(text, lambda one: _without_secrets_once(one, mark, is_secret))


def _without_secrets_once(text: str, mark: str, is_secret: Callable[[str], bool] | None = None) -> str:
    text = replaced(text, _SECRETS, lambda kind, datum: mark)
    text = _OF_CURL.sub(lambda found: f"{found[1]}{mark}", _IN_ADDRESS.sub(mark, text))
    text = _without_named(text, mark, is_secret)

    def put(found: re.Match[str]) -> str:
        return f"{found[1]} {mark}" if is_secret is None or is_secret(found[2]) else found[0]

    return _BEARER.sub(put, text)


def _without_named(text: str, mark: str, is_secret: Callable[[str], bool] | None = None) -> str:
    """The text with a mark in the place of each value whose name is that of a secret."""
    parts, kept, at = [], 0, 0
    while head := _HEAD.search(text, at):
        at = head.end("name")
        if not _introduces(head, text) or not is_secret_name(head["name"]):
            continue
        value = _value_behind(head, text)
        if value is None or value[0] == mark or _ONE_MARK.fullmatch(value[0]):
            continue
        if _is_count(head["name"], value[0]):
            continue
        opening = closing = ""
        if is_secret is not None:
            opening, inner, closing = _unquoted(value[0])
            if not is_secret(inner):
                continue
        parts += [text[kept : head.end()], opening, mark, closing]
        kept = at = value.end()
    return "".join([*parts, text[kept:]])


_QUOTE = re.compile(r"""b?\\{0,8}(?:\"{3}|\'{3}|["'])""")


def _unquoted(value: str) -> tuple[str, str, str]:
    """A value in three parts: its opening quote, what it says, and its closing one; both are empty where none is."""
    opening = _QUOTE.match(value)
    quote = opening[0].removeprefix("b") if opening else ""
    if opening is None or len(value) < opening.end() + len(quote) or not value.endswith(quote):
        return "", value, ""
    return opening[0], value[opening.end() : len(value) - len(quote)], quote


def _introduces(head: re.Match[str], text: str) -> bool:
    """Whether what stands behind a name is a value, and not only the next word."""
    if head["sep"] == ">":
        return text[head.start() - 1 : head.start()] == "<"
    return head["blank"] is None or head["name"].startswith("--")


def _value_behind(head: re.Match[str], text: str) -> re.Match[str] | None:
    if head["sep"] == ">":
        return _ELEMENT.match(text, head.end())
    whole = next((one for part, one in _OF_HEADER.items() if head["name"].lower().endswith(part)), None)
    found = whole.match(text, head.end()) if whole is not None else None
    return found or _LISTED.match(text, head.end()) or _VALUE.match(text, head.end())


def _is_count(name: str, value: str) -> bool:
    return name.lower().endswith("tokens") and value.isdigit()


_ELEMENT = re.compile(r"[^<\n]{1,5000}")
_ONE_MARK = re.compile(_MARK)
_ALL = [(kind, re.compile(pattern)) for kind, pattern in PATTERNS.items()]


def hidden(text: str) -> str:
    """The text without secrets and without personal data, with the kind of each in its place.

    What is hidden already stays as it is.

    >>> hidden("Mail ann@example.org, the key is sk-abcdefghijklmnop, password: hunter2.")
    'Mail [EMAIL], the key is [TOKEN], password: [secret]'
    """
    return _settled(text, _hidden_once)


def _hidden_once(text: str) -> str:
    return _without_secrets_once(replaced(text, _ALL, lambda kind, datum: f"[{kind}]"), "[secret]")


def _settled(text: str, step: Callable[[str], str]) -> str:
    """What a text comes to in some steps: what is taken away may bring to light what its neighbor was part of."""
    for _ in range(_MOST_STEPS):
        before, text = text, step(text)
        if text == before:
            break
    return text


_MOST_STEPS = 10
