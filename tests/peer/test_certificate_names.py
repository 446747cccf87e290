"""Names of certificates and the rules that make users of them, beside Java's own: ACLs hold such texts."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ottla.security.tls.distinguished_name import java_name
from ottla.security.tls.principal_mapping import NoRuleApplies, PrincipalMapping
from tests.support import jvm
from tests.support.names import Attribute, name_der

pytestmark = pytest.mark.jvm
SOURCE = Path(__file__).parent / "java" / "CertificateNames.java"

OIDS = (
    "2.5.4.3", "2.5.4.4", "2.5.4.5", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11", "2.5.4.12",
    "2.5.4.42", "2.5.4.46", "1.2.840.113549.1.9.1", "0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.25",
    "1.3.6.1.4.1.311.60.2.1.3", "2.999.1",
)  # fmt: skip
TAGS = {0x0C: "utf-8", 0x13: "ascii", 0x16: "ascii", 0x14: "latin-1", 0x1B: "ascii", 0x1E: "utf-16-be"}
TEXTS = st.one_of(
    st.text("abcXYZ019 '()+,-./:=?\"\\<>#;\r\t", max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    tag = draw(st.sampled_from(sorted(TAGS)))
    text = draw(TEXTS)
    if TAGS[tag] == "ascii":
        text = text.encode("ascii", "ignore").decode()
    elif TAGS[tag] == "latin-1":
        text = text.encode("latin-1", "ignore").decode("latin-1")
    return Attribute(draw(st.sampled_from(OIDS)), tag, text.encode(TAGS[tag]))


NAMES = st.lists(st.lists(attributes(), min_size=1, max_size=2), max_size=5)


def _asked(lines: list[str]) -> list[str | None]:
    jars = jvm.kafka_jars()
    command = jvm.java(jars, SOURCE.stem, classes=jvm.compiled(jars, SOURCE))
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    return [None if answer == "-" else bytes.fromhex(answer[1:]).decode() for answer in answers]


def _drawn(strategy: st.SearchStrategy[object], count: int) -> list[object]:
    """Examples for one JVM that judges them all."""
    found: list[object] = []

    @settings(
        max_examples=count, phases=(Phase.generate,), database=None, deadline=None,
        suppress_health_check=list(HealthCheck), derandomize=True,
    )  # fmt: skip
    @given(strategy)
    def draw(example: object) -> None:
        found.append(example)

    draw()
    return found


def test_names_are_spelt_as_java_spells_them() -> None:
    drawn = [name_der(*elements) for elements in _drawn(NAMES, 400)]  # type: ignore[misc]
    by_hand = [
        name_der([Attribute("2.5.4.3", 0x0C, b"node")], [Attribute("1.2.840.113549.1.9.1", 0x16, b"a@b.c")]),
        name_der([Attribute("2.5.4.3", 0x13, b"  two blanks  ")]),
        name_der([Attribute("2.5.4.3", 0x0C, b"")]),
        name_der([Attribute("2.5.4.3", 0x0C, b" ")]),
        name_der([Attribute("2.5.4.3", 0x0C, b"nul\0nul")]),
        name_der([Attribute("2.5.4.3", 0x0C, "Jürgen Müller, GmbH".encode())]),
        name_der([Attribute("2.5.4.3", 0x12, b"123")]),
        name_der(),
    ]
    expected = _asked([f"name {name.hex()}" for name in drawn + by_hand])
    ours = [java_name(name) for name in drawn + by_hand]
    # What Java itself refuses to read never gets that far: OpenSSL and Java agree on few of such.
    compared = [(mine, theirs) for mine, theirs in zip(ours, expected, strict=True) if theirs is not None]
    assert len(compared) > 300
    assert [mine for mine, theirs in compared if mine != theirs] == []


RULES = (
    "DEFAULT",
    "RULE:^CN=([^,]+),OU=Ops,.*$/$1/L,DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT",
    "RULE:.*/x/",
    "RULE:.+/x/U",
    "RULE:CN=(.*?),(.*)/$2-$1-$3-$12/",
    "RULE:CN=(.*?),(.*)/$0$1/",
    "RULE:^CN=(a)(b)?.*$/[$2]/",
    "RULE:CN=([^,]*).*/\\$1 costs \\/$1/",
    "RULE:^CN=nobody$/x/",
    " RULE:^CN=([^,]*).*$/$1/U , DEFAULT ",
    "RULE:^CN=([^,]*).*$/$1/\nDEFAULT",
    "RULE:a*/-/,DEFAULT",
    "",
    ",,DEFAULT",
    "RULE:x",
    "RULE:(/x/",
    "NONSENSE",
    "RULE:^CN=(.*)$/$1/X",
)
SUBJECTS = (
    "CN=Alice,OU=Ops,O=Acme,C=DE",
    "CN=kafka1.example.com,OU=ServiceUsers,O=Acme,L=Prague,ST=Bohemia,C=CZ",
    "CN=duke,OU=JavaSoft,O=Sun Microsystems,L=A,ST=B,C=C",
    "CN=ab,O=x",
    "CN=a",
    "O=only",
    "",
    "1.2.840.113549.1.9.1=#16056140622e63,CN=\\#x,O=\u00fc",
)


def test_rules_make_the_user_that_kafka_makes() -> None:
    cases = [(rules, subject) for rules in RULES for subject in SUBJECTS]
    expected = _asked([f"map {rules.encode().hex()} {subject.encode().hex()}" for rules, subject in cases])
    differing = []
    for (rules, subject), theirs in zip(cases, expected, strict=True):
        try:
            mine: str | None = PrincipalMapping(rules).user(subject)
        except (NoRuleApplies, ValueError):
            mine = None
        if mine != theirs:
            differing.append((rules, subject, mine, theirs))
    assert differing == []
    assert sum(theirs is not None for theirs in expected) > 60
