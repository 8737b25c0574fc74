"""`effectful-agents runs` and its like: what is shown of runs, and what can be done with them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from effectful_agents.errors import JournalError, RunInUse
from effectful_agents.handlers.durability import MemoryCheckpointer, SqliteCheckpointer, settle, unsettled
from effectful_agents.harness.commands import main as command
from effectful_agents.messages import Usage
from effectful_agents.operations.prices import cost_of
from effectful_agents.operations.records import Durability, Phase, Record
from effectful_agents.operations.world import now
from effectful_agents.runtime import handler
from effectful_agents.testing.stores import step

CONSOLE = Path(sys.executable).with_name("effectful-agents")
COST, TWICE = (f"${cost_of('gpt-5-mini', Usage(input=n * 1000, output=n * 200)):.4f}" for n in (1, 2))
CALL, MODEL, PAY = "000001-call", "000001-call/000001-model", "000001-call/000002-tool"


def reply(content: str | None, *tool_calls: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 200}
    message = {"role": "assistant", "content": content, "tool_calls": list(tool_calls)}
    return {"response": {"model": "gpt-5-mini", "choices": [{"message": message}], "usage": usage}}


def interrupted(run_id: str) -> list[Record]:
    """A run that was interrupted in a payment."""
    pay = {"function": {"name": "pay", "arguments": '{"amount": 3}'}}
    return [
        step(run_id, ""),
        step(run_id, CALL, name="trip", body={"arguments": {"city": "Oslo"}}, at=100.0),
        step(
            run_id,
            MODEL,
            name="trip",
            digest="abcdef0123456789",
            body={"messages": [{"role": "user", "content": "Go\n to Oslo"}]},
        ),
        step(run_id, MODEL, Phase.COMPLETED, name="trip", body=reply(None, pay)),
        step(run_id, PAY, name="pay", body={"arguments": {"amount": 3}}, at=200.0),
    ]


def finished(run_id: str) -> list[Record]:
    text = "Have\x1b[31m fun \ud83d! " + "So much fun. " * 20
    return [
        *interrupted(run_id),
        step(run_id, PAY, Phase.COMPLETED, name="pay", body={"error": {"text": "OSError: no line"}}),
        step(run_id, PAY, name="pay", attempt=2, body={"arguments": {"amount": 3}}),
        step(run_id, PAY, Phase.COMPLETED, name="pay", attempt=2, body={"message": {"content": "paid"}, "value": 4}),
        step(run_id, "000001-call/000003-model", name="trip", body={"messages": [{"role": "tool", "content": "paid"}]}),
        step(run_id, "000001-call/000003-model", Phase.COMPLETED, name="trip", body=reply(text)),
        step(run_id, CALL, Phase.COMPLETED, name="trip", body={"value": "fun"}, at=250.0),
        step(run_id, "", Phase.COMPLETED, body={"status": "finished"}, at=300.0),
    ]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteCheckpointer:
    monkeypatch.chdir(tmp_path)
    store = SqliteCheckpointer("runs.db", synchronous="normal")
    store.append(*finished("done"))
    store.append(*interrupted("half"))
    return store


@pytest.fixture
def run(store, capsys):
    """A function that runs a command in this process, and gives what it printed; it must end well."""

    def run(*words: str) -> str:
        with handler({now: lambda: 200.0 + 7300}):
            assert command([*words, "--database", "runs.db"]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out

    return run


@pytest.fixture
def refused(store, capsys):
    """A function that runs a command that fails, and gives its exit code and the line that says why."""

    def run(*words: str) -> tuple[int, str]:
        try:
            code = command([*words, "--database", "runs.db"])
        except SystemExit as exit_:
            code = int(str(exit_.code))
        shown = capsys.readouterr()
        assert shown.out == ""
        return code, shown.err.splitlines()[-1]

    return run


# --- the list ---------------------------------------------------------------------------------------------------------


def test_runs_are_listed(run) -> None:
    assert run("runs") == (
        "ID    STATE        SKILL  STEPS  TOKENS     COST  LAST STEP                 AGE\n"
        f"half  interrupted  trip       2   1,200  {COST}  000001-call/000002-tool   2 h\n"
        f"done  finished     trip       3   2,400  {TWICE}  000001-call/000003-model  2 h\n"
    )


def test_a_run_that_goes_on_is_listed_as_such(run, store) -> None:
    lease = store.lease("half")
    assert run("runs").splitlines()[1].startswith("half  running")
    shown = run("runs", "show", "half")
    assert "in use by pid " in shown
    assert "pay  goes on" in shown
    assert "settle" not in shown
    lease.release()


def test_there_may_be_no_runs(run, store) -> None:
    store.delete("half")
    store.delete("done")
    assert run("runs") == "There are no runs in runs.db.\n"


def test_a_run_with_a_model_that_has_no_price_has_no_cost(run, store) -> None:
    body = reply("Hi")
    body["response"]["model"] = "smollm2"
    store.append(step("half", "000001-call/000009-model", Phase.COMPLETED, body=body))
    assert run("runs").splitlines()[1].split()[3:6] == ["3", "2,400", "-"]


def test_what_tokens_cost() -> None:
    usage = Usage(input=1_000_000, output=100_000, cache_read=400_000)
    whole = cost_of("gpt-5-mini", usage)
    assert whole == cost_of("openai/gpt-5-mini", usage)
    without_cache = cost_of("gpt-5-mini", dataclasses.replace(usage, cache_read=None))
    assert whole is not None
    assert without_cache is not None
    assert 0 < whole < without_cache
    assert cost_of("gpt-5-mini", Usage()) is None


# --- one run ----------------------------------------------------------------------------------------------------------


def test_the_steps_of_a_run_are_shown(run) -> None:
    assert run("runs", "show", "half") == (
        f"half  interrupted  trip  2 steps  1,200 tokens  {COST}\n"
        "\n"
        "000001-call  trip  not ended\n"
        '    asked: trip(city="Oslo")\n'
        "  000001-call/000001-model  trip  done  abcdef01\n"
        "      asked: user Go to Oslo\n"
        '      came:  pay({"amount": 3})\n'
        "  000001-call/000002-tool  pay  UNCERTAIN\n"
        "      asked: pay(amount=3)\n"
        f"      settle it: effectful-agents runs settle half {PAY} --database runs.db with "
        "--done VALUE, --redo or --fail [TEXT]\n"
    )


def test_what_a_model_wrote_does_not_steer_the_terminal(run) -> None:
    shown = run("runs", "show", "done")
    assert "  000001-call/000002-tool  pay  attempt 2  done\n" in shown
    assert "came:  4\n" in shown
    assert "\x1b" not in shown
    assert "came:  Have\N{REPLACEMENT CHARACTER}[31m fun \N{REPLACEMENT CHARACTER}! So much fun." in shown
    assert all(len(line) < 130 for line in shown.splitlines())


def test_why_a_run_ended_is_shown(run, store) -> None:
    store.append(step("half", PAY, Phase.COMPLETED, name="pay", body={"error": {"text": "OSError: no line"}}))
    store.append(step("half", "", Phase.COMPLETED, body={"status": "failed", "error": "OSError: no line"}))
    shown = run("runs", "show", "half")
    assert "half  failed" in shown
    assert "ended with OSError: no line\n" in shown
    assert "pay  failed\n" in shown
    assert "      came:  OSError: no line\n" in shown


def test_export_prints_a_record_a_line(run, store) -> None:
    lines = [json.loads(line) for line in run("export", "done").splitlines()]
    fields = [{**line, "phase": Phase(line["phase"]), "durability": Durability(line["durability"])} for line in lines]
    assert [Record(**each) for each in fields] == store.load("done").records


def test_delete_forgets_a_run(run, refused) -> None:
    assert run("delete", "half") == "deleted the run half\n"
    assert "half" not in run("runs")
    assert refused("delete", "half") == (
        1,
        f"error: there is no run `half` in `{Path.cwd()}/runs.db`. There are: `done`.",
    )


def test_a_damaged_run_is_named_and_can_be_deleted(run, refused, store) -> None:
    with store._database.writing() as connection:
        connection.execute("UPDATE run_records SET name = 'steal' WHERE name = 'pay'")
    code, line = refused("runs", "show", "half")
    assert (code, "is damaged" in line, "effectful-agents delete half" in line) == (1, True, True)
    run("delete", "half")


# --- forks ------------------------------------------------------------------------------------------------------------


def test_a_fork_gets_a_name_and_says_where_it_comes_from(run, store) -> None:
    assert run("fork", "done", "--at", PAY) == (
        "made the run done-2; go on with: effectful-agents resume done-2 SCRIPT --database runs.db\n"
    )
    shown = run("runs", "show", "done-2")
    assert shown.splitlines()[:2] == [
        f"done-2  interrupted  trip  1 step  1,200 tokens  {COST}",
        f"forked from done at {PAY}",
    ]
    assert PAY not in shown.splitlines()[3:]
    run("fork", "done-2", "--as", "a new one")
    assert run("runs", "show", "a new one").splitlines()[1] == "forked from done-2"
    assert "done-3" in run("fork", "done")


def test_a_fork_needs_a_step_and_a_new_name(refused) -> None:
    code, line = refused("fork", "done", "--at", "000001-call/000002-tol")
    assert code == 1
    assert line.startswith(f"error: there is no step `000001-call/000002-tol` in the run `done`. Is `{PAY}`")
    assert refused("fork", "done", "--as", "half") == (1, "error: there is a run `half` already; name another one.")


# --- settling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "settled", "shown"),
    [
        (
            ["--done", '{"paid": [1, null]}'],
            {"settled": "done", "value": {"paid": [1, None]}},
            'done, {"paid": [1, null]}',
        ),
        (["--done", "all right"], {"settled": "done", "value": "all right"}, 'done, "all right"'),
        (["--done", "null"], {"settled": "done", "value": None}, "done, null"),
        (["--done", "-3"], {"settled": "done", "value": -3}, "done, -3"),
        (["--redo"], {"settled": "redo"}, "redo"),
        (["--fail"], {"settled": "fail", "error": "it failed"}, "fail: it failed"),
        (["--fail", "no money"], {"settled": "fail", "error": "no money"}, "fail: no money"),
    ],
)
def test_an_uncertain_step_is_settled(run, store, words, settled, shown) -> None:
    assert "resume half SCRIPT --database runs.db" in run("runs", "settle", "half", PAY, *words)
    record = store.load("half").records[-1]
    by = record.body["by"]
    assert dict(record.body) == {**settled, "by": by}
    assert "@" in by
    assert (record.kind, record.name, record.attempt, record.phase) == ("tool", "pay", 1, Phase.COMPLETED)
    assert record.at == 7500.0
    assert unsettled(store.load("half")) == []
    text = run("runs", "show", "half")
    assert f"pay  settled by {by}\n" in text
    assert f"      came:  {shown}\n" in text


def test_a_step_that_failed_can_be_made_again(store) -> None:
    store.append(step("half", PAY, Phase.COMPLETED, name="pay", body={"error": {"text": "no line"}}))
    for answer in ({"done": 3}, {"fail": "no"}):
        with pytest.raises(JournalError, match="what came of the step"):
            settle(store, "half", PAY, **answer)
    record = settle(store, "half", PAY, redo=True)
    assert (record.attempt, record.body["settled"]) == (2, "redo")


def test_an_answer_can_be_changed_until_the_run_has_gone_on_with_it(store) -> None:
    for attempt, answer in enumerate(({"done": "oops"}, {"done": 3}, {"redo": True}, {"fail": "no"}), 1):
        assert settle(store, "half", PAY, **answer).attempt == attempt
        store.append(step("half", "", attempt=attempt + 1))
    completed = store.load("half").completed(PAY)
    assert completed is not None
    assert completed.body["error"] == "no"
    store.append(step("half", "000001-call/000003-model"))
    with pytest.raises(JournalError, match="what came of the step"):
        settle(store, "half", PAY, done=3)


def test_what_cannot_be_settled(refused, store) -> None:
    settling = ("runs", "settle")
    assert refused(*settling, "hal", PAY, "--redo")[1].endswith("runs.db`. Is `half` meant?")
    assert (
        f"there is no step `000001-call/000003-tool` in the run `half`. Is `{PAY}`"
        in refused(*settling, "half", "000001-call/000003-tool", "--redo")[1]
    )
    assert "what came of the step" in refused(*settling, "done", PAY, "--redo")[1]
    assert "effectful-agents fork done --at" in refused(*settling, "done", PAY, "--redo")[1]
    assert "is a `call`: it is taken up again" in refused(*settling, "half", CALL, "--done", "3")[1]
    assert refused(*settling, "half", "", "--redo")[1].startswith("error: there is no step ``")
    assert refused(*settling, "half", PAY)[0] == 2
    assert refused(*settling, "half", PAY, "--redo", "--done", "3")[0] == 2
    lease = store.lease("half")
    code, line = refused(*settling, "half", PAY, "--redo")
    assert (code, "`half` is in use by pid" in line) == (1, True)
    lease.release()
    assert steps_are_uncertain(store)


def steps_are_uncertain(store: SqliteCheckpointer) -> bool:
    return list(unsettled(store.load("half"))) == [PAY]


def test_settling_in_python() -> None:
    store = MemoryCheckpointer()
    store.append(*interrupted("r"))
    for answers in ({}, {"done": 1, "redo": True}, {"redo": True, "fail": "no"}):
        with pytest.raises(JournalError, match="in one way"):
            settle(store, "r", PAY, **answers)
    with pytest.raises(JournalError, match="no plain JSON"):
        settle(store, "r", PAY, done={1, 2})
    lease = store.lease("r")
    with pytest.raises(RunInUse):
        settle(store, "r", PAY, done=None)
    lease.release()
    settle(store, "r", PAY, done=None)
    assert unsettled(store.load("r")) == []
    store.lease("r").release()


def test_only_an_effect_that_must_not_happen_twice_is_settled() -> None:
    store = MemoryCheckpointer()
    store.append(
        step("r", "000001-call"),
        step("r", "000001-call/000001-model"),
        step("r", "000001-call/000002-delegate"),
        step("r", "000001-call/000003-tool", durability=Durability.DEFERRABLE),
        step("r", "000001-call/000004-tool", body={"again": True}),
        step("r", "000001-call/000005-tool"),
    )
    assert unsettled(store.load("r")) == ["000001-call/000005-tool"]


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_database_may_stand_anywhere(run, capsys) -> None:
    expected = run("runs", "show", "half")
    for words in (
        ["runs", "--database", "runs.db", "show", "half"],
        ["runs", "--database=runs.db", "show", "half"],
        ["runs", "show", "--database", "runs.db", "half"],
    ):
        assert command(words) == 0
        assert capsys.readouterr().out == expected
    assert command(["runs", "export", "half", "--database", "runs.db"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_no_database_is_made_by_a_look_at_it(store, capsys, tmp_path) -> None:
    assert command(["runs", "--database", "rums.db"]) == 2
    assert "there is no database `rums.db`" in capsys.readouterr().err
    assert not Path("rums.db").exists()
    assert command(["resume", "half", "script.py", "--database", "rums.db"]) == 2
    Path("letter.db").write_text("Dear reader, " * 100)
    capsys.readouterr()
    assert command(["runs", "--database", "letter.db"]) == 1
    assert "letter.db` is damaged, or no SQLite database" in capsys.readouterr().err


def test_what_is_missing_is_said(refused, capsys) -> None:
    for words in (["runs"], ["resume", "half", "script.py"], ["fork", "half"], ["export"], ["delete", "half"]):
        with pytest.raises(SystemExit) as exit_:
            command(words)
        assert exit_.value.code == 2
        assert "--database" in capsys.readouterr().err
    assert refused("runs", "shout", "half")[0] == 2


@pytest.mark.parametrize("words", [["runs"], ["runs", "settle"], ["resume"], ["fork"], ["export"], ["delete"]])
def test_each_command_explains_itself(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        command([*words, "--help"])
    assert exit_.value.code == 0
    assert f"usage: effectful-agents {' '.join(words)}" in capsys.readouterr().out


def test_resume_explains_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command(["resume", "--help"])
    told = capsys.readouterr().out
    assert "--database runs.db" in told
    assert not any(f"\n  {option} " in told for option in ("--journal", "--run-id"))
    for option in ("--journal", "--run-id"):  # and no word of the script
        with pytest.raises(SystemExit):
            command(["resume", "r", "script.py", "--database", "runs.db", option, "x"])
        assert f"there is no {option}" in capsys.readouterr().err


def test_nobody_need_read_to_the_end(store) -> None:
    store.append(*(step("half", f"{seq:06}-tool", body={"text": "x" * 1000}) for seq in range(10, 400)))
    with subprocess.Popen(
        [CONSOLE, "export", "half", "--database", "runs.db"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.readline()
        done.stdout.close()
        assert done.stderr.read() == b""
    assert done.returncode == 1


def test_resuming_a_run_that_is_not_there_begins_none(refused, store) -> None:
    Path("script.py").write_text("print('never')")
    assert refused("resume", "hall", "script.py") == (
        1,
        f"error: there is no run `hall` in `{store.path}`. Is `half` meant?",
    )
    assert refused("resume", "half", "script.py", "--journal", "other.db")[0] == 2


# --- resuming ---------------------------------------------------------------------------------------------------------

SCRIPT = """
    import sys

    @Tool.define
    def pay(amount: int) -> str:
        '''Pay.'''
        with open("paid.txt", "a") as file:
            file.write(f"{amount}\\n")
        if sys.argv[1] == "crash":
            import os; os._exit(9)
        return "paid"

    @Skill.define
    def trip(city: str) -> str:
        '''Plan a trip to {city}.'''
        raise NotHandled

    replies = {"crash": [calls("pay", amount=3)], "finish": ["Have fun"], "fail": ["Have fun"], "exit": ["Have fun"]}
    with handler(ScriptedModel(*replies[sys.argv[1]])) as model:
        print(trip("Oslo"), *sys.argv[1:])
    if sys.argv[1] == "fail":
        raise OSError("no line")
    sys.exit(4 if sys.argv[1] == "exit" else 0)
"""

STACK = ("--model", "gpt-5-mini", "--eval-provider", "none")


@pytest.fixture
def resumed(launch, script, tmp_path):
    """A function that runs a script as a run, and one that resumes it."""
    name = script(SCRIPT, model=True)
    console = [str(CONSOLE)]

    def begin(*words: str) -> subprocess.CompletedProcess[str]:
        return launch("run", name, *words, "--journal", "runs.db", "--run-id", "r", *STACK, program=console)

    def resume(*words: str) -> subprocess.CompletedProcess[str]:
        return launch("resume", "r", name, "--database", "runs.db", *words, *STACK, program=console)

    return begin, resume


def test_a_run_that_crashed_is_settled_and_resumed(resumed, tmp_path, monkeypatch, capsys) -> None:
    begin, resume = resumed
    assert begin("crash").returncode == 9
    monkeypatch.chdir(tmp_path)
    assert command(["runs", "--database", "runs.db"]) == 0
    assert "r   interrupted  trip" in capsys.readouterr().out
    step_id = SqliteCheckpointer("runs.db").load("r").steps()[-1]
    done = resume("finish")
    assert (done.returncode, done.stdout) == (1, "")
    (error,) = done.stderr.splitlines()
    assert error.startswith(f"error: the step `{step_id}` was attempted, and whether it happened is not known.")
    assert command(["runs", "--database", "runs.db"]) == 0
    assert "r   uncertain  trip" in capsys.readouterr().out
    assert command(["runs", "settle", "r", step_id, "--done", "paid", "--database", "runs.db"]) == 0
    done = resume("finish", "--loudly")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Have fun finish --loudly\n", "")
    assert (tmp_path / "paid.txt").read_text() == "3\n"
    (info,) = SqliteCheckpointer("runs.db").runs()
    assert info.status == "finished"


@pytest.mark.parametrize(("ends", "code", "status"), [("fail", 1, "failed"), ("exit", 4, "interrupted")])
def test_how_a_script_ended_is_how_its_run_ended(
    script, here, tmp_path, monkeypatch, capsys, ends: str, code: int, status: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = script(SCRIPT, model=True)
    assert command(["run", name, ends, "--journal", "runs.db", "--run-id", "r", *STACK]) == code
    assert capsys.readouterr().out == f"Have fun {ends}\n"
    store = SqliteCheckpointer(tmp_path / "runs.db")
    (info,) = store.runs()
    assert info.status == status
    lease = store.lease("r")
    resume = ["resume", "r", name, "finish", "--database", "runs.db", *STACK]
    assert command(resume) == 1
    told = capsys.readouterr().err
    assert "error: the run `r` is in use by pid" in told
    assert "That is this process" in told
    lease.release()
    assert command(resume) == 0
    assert capsys.readouterr() == ("Have fun finish\n", "")
    (info,) = store.runs()
    assert (info.status, info.steps) == ("finished", 1)


def test_a_journal_that_cannot_be_kept_is_named(script, here, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["run", script("print('never')"), "--journal", str(tmp_path), *STACK]) == 2
    shown = capsys.readouterr()
    assert (shown.out, f"error: the database `{tmp_path}` cannot be written" in shown.err) == ("", True)
