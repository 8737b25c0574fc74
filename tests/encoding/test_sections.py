from typing import Any

from effectful_agents.encoding import render_section
from effectful_agents.operations.prompt import section

PICTURE: Any = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def markdown(*content: Any) -> str:
    (block,) = render_section(section("Document", *content))
    assert block["type"] == "text"
    return block["text"]


def test_sections_become_headings_one_level_deeper_each_time():
    assert markdown("Preface.", section("A", "a", section("B", "b")), section("C", "c")) == (
        "Preface.\n\n# A\n\na\n\n## B\n\nb\n\n# C\n\nc"
    )


def test_headings_stop_at_the_sixth_level():
    inner = section("deepest", "x")
    for _ in range(7):
        inner = section("s", inner)

    assert "\n\n###### deepest\n\nx" in markdown(inner)


def test_empty_sections_are_left_out():
    assert markdown(section("A"), section("B", section("C", " \n")), section("D", "d")) == "# D\n\nd"
    assert render_section(section("Document", section("A"))) == []


def test_the_text_itself_stays_as_it_is():
    assert markdown(section("A", "# mine\n\n    code  \n")) == "# A\n\n# mine\n\n    code  \n"


def test_one_blank_line_stands_between_texts():
    assert markdown("a\n\n\n", "\n\nb", section("C", "\nc\n"), "d") == "a\n\nb\n\n# C\n\nc\n\nd"


def test_media_stand_between_blocks_of_text():
    assert render_section(section("Document", section("A", "see ", PICTURE, " there"), section("B", PICTURE))) == [
        {"type": "text", "text": "# A\n\nsee "},
        PICTURE,
        {"type": "text", "text": " there\n\n# B"},
        PICTURE,
    ]
