"""The policy, in process and as the process that a host launches."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from expression import CompileError, Expression, has_number, has_text
from policy import EXPRESSION_ERROR, Policy
from prompts import Prompts

from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.points import POINTS
from agent_hooks.plugin import ConfigError, Decision, Verdict
from agent_hooks.plugin.author import check_config, read_author
from agent_hooks.plugin.testing import JudgeError, judging_process

HERE = Path(__file__).parent
Judge = Callable[[dict[str, Any]], Verdict]


# --- two ways to the same answers ---


@contextmanager
def _in_process(config: dict[str, Any]) -> Iterator[Judge]:
    policy = Policy()
    check_config(read_author(policy), config)
    yield policy.intercept


@contextmanager
def _launched(config: dict[str, Any]) -> Iterator[Judge]:
    """The plugin as its own process; a refused configuration raises ConfigError here too."""
    with ExitStack() as stack:
        try:
            judge = stack.enter_context(
                judging_process([sys.executable, "main.py"], config, cwd=HERE)
            )
        except JudgeError as refusal:
            if refusal.code is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            pairs = [line.split(": ", 1) for line in refusal.details.split("\n")]
            raise ConfigError(*pairs[0], *map(tuple, pairs[1:])) from None
        yield judge


@pytest.fixture(params=[_in_process, _launched], ids=["in process", "launched"])
def judging(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[Judge]]:
    """`with judging(config) as judge: judge(context)`."""
    return request.param


@pytest.fixture
def policy(judging: Any) -> Iterator[Callable[..., Judge]]:
    """`policy(rule, rule, …)`: a judge with these rules."""
    with ExitStack() as stack:
        yield lambda *rules, **more: stack.enter_context(judging({"rules": list(rules), **more}))


@pytest.fixture
def here() -> Iterator[Callable[..., Judge]]:
    """Like `policy`, in process only: for the many cases of one claim."""
    with ExitStack() as stack:
        yield lambda *rules, **more: stack.enter_context(
            _in_process({"rules": list(rules), **more})
        )


# --- what is judged ---

_sessions = itertools.count()


def new_session() -> AgentContextBuilder:
    return AgentContextBuilder(
        agent_id="agent", framework="test", session_id=f"session-{next(_sessions)}"
    )


def tool_call(name: str = "shell", session: Any = None, **args: Any) -> dict[str, Any]:
    return (session or new_session()).pre_tool_call(call_id="1", name=name, args=args)


def rule(when: str, then: str = "deny", **more: Any) -> dict[str, Any]:
    return {"when": when, "then": then, "reason": then + "ed", **more}


# --- decisions ---


def test_no_matching_rule_allows(policy):
    assert policy(rule('tool.name == "shell"'))(tool_call("read")) == Verdict.allow()


@pytest.mark.parametrize(("then", "liftable"), [("deny", False), ("escalate", True)])
def test_a_matching_rule_denies_or_escalates_with_its_reason_and_message(policy, then, liftable):
    verdict = policy(rule('tool.name == "shell"', then, message="no shell"))(tool_call())
    assert (verdict.decision, verdict.reason, verdict.message) == (
        Decision.DENY,
        then + "ed",
        "no shell",
    )
    assert verdict.is_liftable is liftable


def test_the_first_matching_rule_wins(policy):
    judge = policy(
        rule("args.n > 10", "escalate", reason="first"), rule("args.n > 5", reason="second")
    )
    assert judge(tool_call(n=20)).reason == "first"
    assert judge(tool_call(n=7)).reason == "second"


def test_warnings_accumulate_and_go_on_to_whatever_decides(policy):
    judge = policy(
        rule("true", "warn", reason="one"),
        rule("args.n > 5", "warn", reason="two", message="big"),
        rule("args.n > 10"),
        rule("true", "warn", reason="three"),
    )
    allowed, denied = judge(tool_call(n=7)), judge(tool_call(n=20))
    assert [w.reason for w in allowed.warnings] == ["one", "two", "three"]
    assert allowed.decision is Decision.ALLOW
    assert [w.to_wire() for w in denied.warnings] == [
        {"reason": "one"},
        {"reason": "two", "message": "big"},
    ]
    assert denied.is_plain_deny


def test_a_rule_holds_only_at_its_points(policy):
    judge = policy(rule("true", at=["output"]))
    session = new_session()
    assert judge(session.input(content="hello")).decision is Decision.ALLOW
    assert judge(session.output(content="bye")).is_plain_deny


def test_a_rule_without_points_holds_at_all_eight(policy):
    judge = policy(rule("point != '' && has(context.session.id) && session.id == session.id"))
    for context in every_point():
        assert judge(context).is_plain_deny, context["interception_point"]


def every_point() -> list[dict[str, Any]]:
    session = new_session()
    call = {"call_id": "1", "name": "shell", "args": {}}
    contexts = [
        session.agent_startup(tools_registered=[]),
        session.input(content="hello"),
        session.pre_model_call(model_id="m", messages=[]),
        session.post_model_call(model_id="m", content="", tool_calls=[], finish_reason="stop"),
        session.pre_tool_call(**call),
        session.post_tool_call(**call, value=None),
        session.output(content="bye"),
        session.agent_shutdown(reason="completed"),
    ]
    assert [context["interception_point"] for context in contexts] == list(POINTS)
    return contexts


@pytest.mark.parametrize("value", [None, 7, "x", {"a": [1, 2.5, None]}])
def test_a_transform_puts_the_literal_where_the_path_points(here, value):
    at_tools = {"at": ["pre_tool_call"], "path": "$target.limit", "value": value}
    verdict = here(rule("args.limit > 10", "transform", **at_tools))(tool_call(limit=100))
    assert verdict.decision is Decision.TRANSFORM
    assert (verdict.transform.path, verdict.transform.value) == ("$target.limit", value)


def test_a_transform_takes_its_value_from_an_expression(policy):
    judge = policy(
        rule("true", "warn", reason="seen"),
        rule(
            "size(args.to) > 1",
            "transform",
            at=["pre_tool_call"],
            path="$target.to",
            value_from='args.to.filter(a, a.endsWith("@example.org"))',
        ),
    )
    verdict = judge(tool_call(to=["a@example.org", "b@evil.test"]))
    assert verdict.transform.value == ["a@example.org"]
    assert [w.reason for w in verdict.warnings] == ["seen"]


# --- an expression without an answer fails closed ---


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("args.missing == 1", "a member is missing"),
        ("args.list[3] == 1", "an index is out of range"),
        ('args.text < 1 || args.text.contains("x")', "the types of the operands do not fit"),
        ("args.zero / 0 == 1", "division by zero"),
        ("args.one + 9223372036854775807 > 0", "a number is out of range"),
        ("has_text(args.one, 'hunter2')", "a call failed"),
        ("args.text.matches('(hunter2')", "a call failed"),
        ("args.text", "when is neither true nor false"),
    ],
)
def test_an_error_denies_with_the_rule_and_the_problem_but_no_value(here, when, problem):
    judge = here(rule("true", "warn"), rule(when, "warn"), rule("true", "escalate"))
    verdict = judge(tool_call(list=[], text="hunter2", zero=0, one=1))
    assert verdict.is_plain_deny
    assert verdict.reason == EXPRESSION_ERROR
    assert verdict.message == f"rule 1: {problem}"
    assert [w.reason for w in verdict.warnings] == ["warned"]


def test_an_error_escalates_where_the_configuration_says_so(policy):
    judge = policy(rule("args.missing"), on_error="escalate")
    verdict = judge(tool_call())
    assert verdict.is_liftable
    assert verdict.reason == EXPRESSION_ERROR


def test_an_error_in_a_rule_that_is_not_reached_does_not_count(policy):
    judge = policy(rule("args.n == 1", "escalate"), rule("args.missing == 1"))
    assert judge(tool_call(n=1)).is_liftable
    assert judge(tool_call(n=2)).reason == EXPRESSION_ERROR


@pytest.mark.parametrize(
    "value_from",
    ["args.missing", 'timestamp("2024-01-01T00:00:00Z")', 'b"x"', "{1: 2}", "1.0 / 0.0"],
)
def test_a_value_that_cannot_be_had_or_is_no_json_fails_closed(here, value_from):
    judge = here(
        rule("true", "transform", at=["pre_tool_call"], path="$target.a", value_from=value_from)
    )
    verdict = judge(tool_call(a=1))
    assert verdict.is_plain_deny
    assert verdict.reason == EXPRESSION_ERROR


def test_a_value_that_cel_cannot_hold_fails_closed(here):
    assert here(rule("target == 1"))(tool_call(text="\ud800")).reason == EXPRESSION_ERROR


def test_what_fails_inside_a_function_is_not_logged(capfd):
    with _launched({"rules": [rule('has_text(args.n, "hunter2")')]}) as judge:
        assert judge(tool_call(n=1)).reason == EXPRESSION_ERROR
    assert "hunter2" not in "".join(capfd.readouterr())


def test_each_kind_of_error_crosses_the_wire(policy):
    judge = policy(rule("args.a.b == 1"), rule("args.list[3] == 1"), rule("args.list"))
    assert judge(tool_call(a={})).message == "rule 0: a member is missing"
    assert judge(tool_call(a={"b": 2}, list=[])).message == "rule 1: an index is out of range"
    whole = judge(tool_call(a={"b": 2}, list=[0, 0, 0, 0]))
    assert whole.message == "rule 2: when is neither true nor false"


# --- configurations that are refused ---


@pytest.mark.parametrize(
    ("rules", "pointer", "problem"),
    [
        ([rule("true"), rule('args.key == "hunter2')], "/rules/1/when", "line 1, column 13: "),
        ([rule("true &&\n  (x == 'hunter2'")], "/rules/0/when", "line 2, column 18: missing"),
        ([rule("'hunter2' == args.?x")], "/rules/0/when", "line 1, column 18: unsupported syntax"),
        ([rule("")], "/rules/0/when", "line 1, column 1: mismatched input"),
        ([rule("'hunter2' == nobody")], "/rules/0/when", "line 1, column 14: names a variable"),
        ([rule("'nobody' == \n nobody")], "/rules/0/when", "line 2, column 2: names a variable"),
        ([rule("tool.nobody.all(x, x == y)")], "/rules/0/when", "line 1, column 25: names"),
        ([rule("hunter2(args)")], "/rules/0/when", "line 1, column 1: calls a function"),
        ([rule("args.all(k, v, k == v)")], "/rules/0/when", "line 1, column 6: calls"),
        ([rule("Account{id: 1} == target")], "/rules/0/when", "line 1, column 1: builds"),
        ([rule("true", path="$target.a")], "/rules/0/path", "only goes with then: transform"),
        ([rule("true", value=1)], "/rules/0/value", "only goes with then: transform"),
        ([rule("true", "allow")], "/rules/0/then", "does not satisfy enum"),
        ([rule("true", reason="host_error:x")], "/rules/0/reason", "does not satisfy pattern"),
        ([rule("true", at=["pre_tool"])], "/rules/0/at/0", "does not satisfy enum"),
        ([rule("true", at=[])], "/rules/0/at", "does not satisfy minItems"),
        ([rule("true", if_="x")], "/rules/0", "has a member that is not known"),
        ([{"when": "true", "then": "deny"}], "/rules/0", "misses reason"),
        ([], "/rules", "does not satisfy minItems"),
    ],
)
def test_a_bad_rule_is_refused_at_its_place_without_its_text(rules, pointer, problem):
    with pytest.raises(ConfigError) as refused, _in_process({"rules": rules}):
        pass
    place, text = refused.value.findings[0]
    assert place == pointer
    assert text.startswith(problem)
    assert "hunter2" not in str(refused.value)


TRANSFORM = {
    "when": "true",
    "then": "transform",
    "reason": "r",
    "at": ["output"],
    "path": "$target.content",
    "value": 1,
}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"value_from": "1"}, "/rules/0/value_from"),
        ({"value": ..., "value_from": "1 +"}, "/rules/0/value_from"),
        ({"value": ...}, "/rules/0"),
        ({"at": ...}, "/rules/0/at"),
        ({"at": ["output", "agent_shutdown"]}, "/rules/0/at"),
        ({"path": ...}, "/rules/0/path"),
        ({"path": "$context.output"}, "/rules/0/path"),
        ({"path": "$target.a b"}, "/rules/0/path"),
    ],
)
def test_a_transform_that_could_never_apply_is_refused(change, pointer):
    changed = {**TRANSFORM, **change}
    only = {member: value for member, value in changed.items() if value is not ...}
    with pytest.raises(ConfigError) as refused, _in_process({"rules": [only]}):
        pass
    assert [place for place, _ in refused.value.findings] == [pointer]


def test_several_findings_are_reported_at_once_and_over_the_wire(judging):
    bad = {"rules": [rule("x y"), rule("true"), rule("nobody == 'hunter2'", path="$target")]}
    with pytest.raises(ConfigError) as refused, judging(bad):
        pass
    places = [place for place, _ in refused.value.findings]
    assert places == ["/rules/0/when", "/rules/2/path", "/rules/2/when"]
    assert "hunter2" not in str(refused.value)


def test_a_hundred_bad_rules_are_refused_over_the_wire_as_one_is(judging):
    with pytest.raises(ConfigError) as refused, judging({"rules": [rule("nobody")] * 100}):
        pass
    assert len(refused.value.findings) == 20


def test_words_in_strings_and_comments_are_no_names():
    source = "r'\\' == \"nobody{\" // nobody.all(x, y)\n || '''a\nb''' == args.x"
    assert Expression(source, ["args"]).names == {"args"}


def test_a_name_bound_by_a_macro_is_known_and_others_are_not():
    Expression("args.all(k, args[k].exists(v, v == k))", ["args"])
    with pytest.raises(CompileError, match="line 1, column 29"):
        Expression("args.exists(k, k == 'a') && v", ["args"])


# --- the user's words ---


def test_prompt_is_the_latest_user_message_of_the_chain(policy):
    judge = policy(rule('prompt == "second"'))
    user = [{"role": "user", "content": text} for text in ("first", "second")]
    later = {"role": "tool", "content": "third"}
    session = new_session()
    assert judge(session.pre_model_call(model_id="m", messages=[*user, later])).is_plain_deny
    assert judge({**tool_call(), "messages": user}).is_plain_deny
    assert judge({**tool_call(), "messages": user[:1]}).decision is Decision.ALLOW


@pytest.mark.parametrize(
    "content",
    [
        "hello",
        {"text": "hello"},
        {"type": "text", "text": "hello"},
        [{"type": "text", "text": "hello"}, {"type": "image", "text": "no"}],
        [{"type": "tool_result", "content": "no"}, {"type": "input_text", "text": "hello"}],
        ["hello"],
    ],
)
def test_prompt_reads_the_usual_shapes_of_content(here, content):
    judge = here(rule('prompt == "hello"'))
    messages = [{"role": "user", "content": content}]
    assert judge({**tool_call(), "messages": messages}).reason == "denyed"


def test_a_tool_result_in_a_user_message_is_not_the_users_word(policy):
    judge = policy(rule('prompt == "mine"', "escalate"))
    result = {"type": "tool_result", "content": [{"type": "text", "text": "theirs"}]}
    messages = [{"role": "user", "content": "mine"}, {"role": "user", "content": [result]}]
    assert judge({**tool_call(), "messages": messages}).is_liftable


def test_prompt_is_remembered_from_input_for_its_session_alone(policy):
    judge = policy(rule('prompt == "mine"', at=["pre_tool_call"]))
    mine, other = new_session(), new_session()
    judge(mine.input(content="mine"))
    judge(other.input(content="other"))
    assert judge(tool_call(session=mine)).reason == "denyed"
    assert judge(tool_call(session=other)).decision is Decision.ALLOW


@pytest.mark.parametrize("role", ["external", "system"])
def test_an_input_that_is_not_from_the_user_is_not_remembered(here, role):
    judge = here(rule('prompt == "mine"', at=["input", "pre_tool_call"]))
    session = new_session()
    judge(session.input(content="mine"))
    assert judge(session.input(content="theirs", role=role)).reason == "denyed"
    assert judge(tool_call(session=session)).reason == "denyed"


@pytest.mark.parametrize("boundary", ["agent_startup", "agent_shutdown"])
def test_prompt_is_forgotten_at_the_ends_of_a_session(policy, boundary):
    judge = policy(rule("prompt != null", at=["pre_tool_call"]))
    session = new_session()
    judge(session.input(content="mine"))
    assert judge(tool_call(session=session)).is_plain_deny
    ends = {
        "agent_startup": lambda: session.agent_startup(tools_registered=[]),
        "agent_shutdown": lambda: session.agent_shutdown(reason="completed"),
    }
    judge(ends[boundary]())
    assert judge(tool_call(session=session)).decision is Decision.ALLOW


def test_an_unknown_prompt_is_null_so_that_rules_over_it_fail_closed(here):
    assert here(rule("prompt.contains('x')"))(tool_call()).reason == EXPRESSION_ERROR
    assert here(rule("has_text(prompt, 'x')"))(tool_call()).reason == EXPRESSION_ERROR


def test_remembered_prompts_are_bounded_in_number_and_size():
    prompts = Prompts(max_sessions=3, max_characters=100)

    def hear(session: str, text: str | None = None) -> str | None:
        point = {"interception_point": "input" if text else "output", "session": {"id": session}}
        return prompts.follow({**point, "input": {"content": text, "role": "user"}})

    for session in "abc":
        hear(session, session)
    assert hear("a") == "a"  # heard of again, so b is the oldest now
    hear("d", "d")
    assert [hear(session) for session in "abcd"] == ["a", None, "c", "d"]
    hear("e", "e" * 99)
    assert [hear(session) for session in "acde"] == [None, None, "d", "e" * 99]
    hear("e", "short")
    hear("f", "f" * 90)
    assert len(prompts) == 3


# --- the functions ---


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("GB29NWBK60161331926819", True),
        ("gb29nwbk60161331926819", True),
        ("1234 elm   street", True),
        ("New York, NY 10001", True),
        ("GB29", False),
        ("29", False),
        ("Elm New", False),
        ("Street, New", True),
        ("", False),
        ("...", False),
        (["Elm", "York"], True),
        (["Elm", "Evil"], False),
        ([], False),
    ],
)
def test_has_text_finds_whole_words_in_order(wanted, there):
    text = "Send 4.5 to (GB29NWBK60161331926819), 1234 Elm Street, New\n York, NY 10001."
    assert has_text(text, wanted) is there


@pytest.mark.parametrize("number", [30000, 30000.0, 4.5, 7, -3, 0.07])
def test_has_number_finds_a_number_however_it_is_written(number):
    assert has_number("$30,000 and 4.50, 7. or -3 (0.07)", number)


@pytest.mark.parametrize("number", [30, 0, 4, 5, 3, 300, 2, 1])
def test_has_number_finds_no_part_of_a_number_or_word(number):
    assert not has_number("$30,000 and 4.50, or -3, x2 1st 300.1.2 2a", number)


@pytest.mark.parametrize(
    "text", ["1" * 200_000 + "x", "a!" * 100_000, "!" * 200_000, "1,111" * 40_000]
)
def test_the_functions_take_linear_time_on_hostile_text(text):
    assert not has_text(text, "needle")
    assert not has_number(text, 0.5)


# --- what the README says ---


def test_the_rules_in_the_readme_compile_and_decide(here):
    toml = (HERE / "README.md").read_text().partition("```toml\n")[2].partition("```")[0]
    judge = here(*tomllib.loads(toml)["bindings"][0]["config"]["rules"])
    asked = {"messages": [{"role": "user", "content": "Send it to bob."}]}
    assert judge(tool_call("shell", command="rm -rf /")).reason == "no_bulk_delete"
    assert judge({**tool_call("send", recipient="eve"), **asked}).is_liftable
    assert judge({**tool_call("send", recipient="bob"), **asked}) == Verdict.allow()
    assert judge(tool_call("search", limit=100)).transform.value == 50


@pytest.mark.parametrize(
    ("when", "answer"),
    [
        ("args.missing == 1 || true", True),
        ("args.missing == 1 && false", False),
        ("args.whole == 98 && args.whole < 98.5", True),
        ("args.whole * 1.5 > 1.0", "the types of the operands do not fit"),
        ("double(args.whole) * 1.5 > 1.0", True),
        ("size(args.accent) == 2", True),
        ("has(args.accent.a)", "the types of the operands do not fit"),
        ("has(args.nothing.a)", "the types of the operands do not fit"),
        ("args.list.exists(m, m.a == 1)", "a member is missing"),
        ("args.list.exists(m, has(m.a) && m.a == 1)", True),
        ("args.accent.matches('[(')", "a call failed"),
        ("args.word.matches('b')", True),
    ],
)
def test_the_dialect_is_the_one_that_the_readme_describes(here, when, answer):
    args = {"whole": 98, "accent": "é", "nothing": None, "list": [{}, {"a": 1}], "word": "abc"}
    verdict = here(rule(when, "warn"))(tool_call(**args))
    if isinstance(answer, str):
        assert verdict.message == f"rule 0: {answer}"
    else:
        assert bool(verdict.warnings) is answer


# --- concurrency ---


def test_concurrent_calls_do_not_mix(policy):
    judge = policy(
        rule("args.n % 3 == 0", "warn", message="fizz"),
        rule("args.n % 5 == 0", "escalate", message="buzz"),
        rule('messages.exists(m, m.role == "user" && m.content == "stop")'),
    )
    start = threading.Barrier(8)

    def worker(number: int) -> list[tuple[int, Verdict]]:
        start.wait()
        return [
            (n, judge({**tool_call(n=n), "messages": [{"role": "user", "content": "go"}]}))
            for n in range(number, 200, 8)
        ]

    with ThreadPoolExecutor(8) as pool:
        answers = [answer for answers in pool.map(worker, range(8)) for answer in answers]
    assert len(answers) == 200
    for n, verdict in answers:
        assert verdict.is_liftable is (n % 5 == 0)
        assert bool(verdict.warnings) is (n % 3 == 0)


def test_nothing_listens_before_the_host_says_where():
    """The program is a plugin: launched by hand it says so and ends."""
    environment = {k: v for k, v in os.environ.items() if k != "AGENT_HOOKS_PLUGIN_ADDRESS"}
    run = subprocess.run(
        [sys.executable, HERE / "main.py"],
        check=False,
        env=environment,
        capture_output=True,
        timeout=20,
    )
    assert run.returncode == 2
    assert b"is a plugin" in run.stderr
