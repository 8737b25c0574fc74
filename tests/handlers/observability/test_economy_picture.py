"""The picture of a run: what is in it, for whoever sees it and whoever does not."""

from __future__ import annotations

import re
import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.handlers.observability import ContextEconomy, TurnEconomy
from effectful_agents.handlers.observability.context_economy import PrefixBreak, Section, TurnOutcome
from effectful_agents.harness.commands import main as command
from effectful_agents.messages import Usage
from tests.handlers.observability.pictures import FOLDER, PAGE, PICTURES, drawn, programs, run_page
from tests.test_docs import shows

SVG = "{http://www.w3.org/2000/svg}"


def turn(**fields: Any) -> TurnEconomy:
    given: dict[str, Any] = {"sections": {Section.SYSTEM: 300, Section.USER: 100}, "outcome": TurnOutcome.REPLIED}
    return TurnEconomy(step_id="000001-model", skill="trip", model="m", **given | fields)


def picture(*turns: TurnEconomy) -> ET.Element:
    return ET.fromstring(ContextEconomy("monday", turns).to_svg())


def texts(root: ET.Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def heights(bar: ET.Element) -> list[float]:
    return [float(str(rect.get("height"))) for rect in bar.findall(f"{SVG}rect")]


def test_a_reader_that_sees_nothing_is_told_the_numbers() -> None:
    root = picture(turn(usage=Usage(input=400, output=1, cache_read=100)), turn(outcome=TurnOutcome.UNKNOWN))
    assert root.get("role") == "img"
    description = root.findtext(f"{SVG}desc")
    assert description is not None
    assert description.startswith("Turns with a reply: 1, without: 1.")
    assert "system 300, user 100. Served from a cache: 25%." in description
    told = [bar.findtext(f"{SVG}title") for bar in root.findall(f"{SVG}g")]
    assert told == ["turn 1, trip: 400 tokens, 25% from a cache", "turn 2, trip: 400 tokens, unknown"]


def test_the_legend_names_what_is_there_and_nothing_else() -> None:
    assert texts(picture(turn()))[:3] == ["Tokens of the prompts of monday", "system", "user"]
    assert "the prefix broke" not in texts(picture(turn()))
    broken = turn(broken=PrefixBreak(part="tools", where="the tools", how="changed"), outcome=TurnOutcome.REFUSED)
    assert {"the prefix broke", "the reply was refused"} <= set(texts(picture(broken)))
    assert "no reply: in no sum" in texts(picture(turn(outcome=TurnOutcome.FAILED)))


def test_the_cached_share_is_striped_from_the_bottom() -> None:
    (bar,) = picture(turn(usage=Usage(input=1000, output=1, cache_read=750))).findall(f"{SVG}g")
    system, user, striped = bar.findall(f"{SVG}rect")
    assert str(striped.get("fill")).startswith("url(#")
    assert float(str(striped.get("height"))) == pytest.approx(0.75 * sum(heights(bar)[:2]), abs=0.2)
    bottoms = [float(str(rect.get("y"))) + float(str(rect.get("height"))) for rect in (system, striped)]
    assert bottoms[0] == pytest.approx(bottoms[1], abs=0.2)
    assert float(str(user.get("y"))) < float(str(system.get("y")))


def test_heights_are_in_proportion() -> None:
    one, two = picture(turn(), turn(sections={Section.SYSTEM: 600, Section.USER: 200})).findall(f"{SVG}g")
    assert heights(two) == pytest.approx([2 * height for height in heights(one)], abs=0.2)


def test_many_turns_share_bars() -> None:
    svg = ContextEconomy("long", (turn(),) * 1000).to_svg()
    root = ET.fromstring(svg)
    assert len(root.findall(f"{SVG}g")) == 200
    assert "Each bar is the mean of up to 5 turns." in str(root.findtext(f"{SVG}desc"))
    assert len(svg) < 200_000


def test_an_empty_picture_is_a_picture() -> None:
    assert picture().findall(f"{SVG}g") == []


def test_two_pictures_can_stand_in_one_page() -> None:
    one, two = (ContextEconomy(name, (turn(),)).to_svg() for name in ("monday", "tuesday"))
    names = [{element.get("id") for element in ET.fromstring(svg).iter() if element.get("id")} for svg in (one, two)]
    assert names[0].isdisjoint(names[1])


def test_it_is_legible_on_dark_ground() -> None:
    style = picture(turn()).findtext(f"{SVG}style")
    assert "prefers-color-scheme:dark" in str(style)


@pytest.mark.parametrize("name", list(PICTURES))
def test_pictures_of_the_docs_are_what_is_drawn(name: str) -> None:
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == drawn(name), "run `uv run python -m tests.handlers.observability.pictures`"


def test_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_programs = run_page(tmp_path)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    captures = re.findall(r"^```text\n\$ ([^\n]*)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(captures) == 3
    for line, shown in captures:
        program, *words = shlex.split(line)
        if program == "python":
            printed = of_programs[words[0]]
        else:
            assert program == "effectful-agents"
            assert command(words) == 0
            printed = capsys.readouterr().out
        assert shows(shown, printed), printed


def test_programs_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    page, printed = PAGE.read_text("utf-8"), run_page(tmp_path)
    assert list(printed) == ["trip.py", "used.py", "picture.py"]
    for name, code in programs():
        after = page[page.index(code) + len(code) :]
        if (shown := re.match(r"```\n\n```text\n([^$].*?)^```$", after, re.M | re.S)) is not None:
            assert shows(shown[1], printed[name]), printed[name]
        else:
            assert name == "trip.py"


def test_commands_of_the_page_that_are_not_shown_with_their_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, code in programs():
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (prompt,) = re.findall(r"^    effectful-agents ([^\n]*)$", PAGE.read_text("utf-8"), re.M)
    assert command(shlex.split(prompt)) == 0
    assert "by the sea" in capsys.readouterr().out
    assert not Path("runs.db").exists()  # no program ran
    ((code, argument),) = [
        shlex.split(line)[1:] for line in re.findall(r"^    (python -c .*)$", PAGE.read_text("utf-8"), re.M)
    ]
    assert code == "-c"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trip", raising=False)
    exec(argument, {})
    monkeypatch.delitem(sys.modules, "trip")
    assert capsys.readouterr().out == "Bodø. 5 Tromsø, then.\n"  # panels are for terminals
