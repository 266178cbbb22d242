"""Arguments of plugins are read as Go's flag package reads them."""

import msgspec
import pytest

from volcano_py.api.plugin_arguments import NoArguments, Port, Seconds, parse


class Some(msgspec.Struct, frozen=True, rename="kebab"):
    port: Port = 22
    key_file: str = "/root"
    publish_all: bool = False
    inject: bool = True
    time_limit: Seconds = 300


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], Some(), id="nothing"),
        pytest.param(["--port=80"], Some(port=80), id="two-dashes"),
        pytest.param(["-port=80"], Some(port=80), id="one-dash"),
        pytest.param(["--port", "80", "--inject=false"], Some(port=80, inject=False), id="value-in-the-next-word"),
        pytest.param(["--publish-all"], Some(publish_all=True), id="a-switch-alone"),
        pytest.param(["--publish-all", "--port=80"], Some(publish_all=True, port=80), id="a-switch-takes-no-word"),
        pytest.param(["--publish-all=T", "--inject=0"], Some(publish_all=True, inject=False), id="switches-as-in-Go"),
        pytest.param(["--port=80", "--port=81"], Some(port=81), id="the-last-wins"),
        pytest.param(["--key-file=a=b"], Some(key_file="a=b"), id="equals-sign-in-a-value"),
        pytest.param(["--key-file", "-----BEGIN"], Some(key_file="-----BEGIN"), id="dashes-in-a-value"),
        pytest.param(["--key-file="], Some(key_file=""), id="empty-value"),
        pytest.param(["--time-limit=0"], Some(time_limit=0), id="no-time"),
    ],
)
def test_what_is_understood(arguments, expected):
    assert parse(Some, arguments) == (expected, ())


@pytest.mark.parametrize(
    ("arguments", "expected", "problem"),
    [
        (["--prot=80"], Some(), "unknown argument --prot; known are --port, --key-file"),
        (["--prot", "80", "--inject=false"], Some(inject=False), "unknown argument --prot;"),
        (["--port=http"], Some(), 'argument --port cannot have the value "http": 22 is used'),
        (["--port=0"], Some(), 'argument --port cannot have the value "0": 22 is used'),
        (["--port=65536"], Some(), 'argument --port cannot have the value "65536": 22 is used'),
        (["--port=80", "--port=x"], Some(), 'argument --port cannot have the value "x": 22 is used'),
        (["--time-limit=-1"], Some(), 'argument --time-limit cannot have the value "-1": 300 is used'),
        (["--inject=yes"], Some(), 'argument --inject cannot have the value "yes": true is used'),
        (["--port"], Some(), "argument --port has no value: 22 is used"),
        (["false", "--port=80"], Some(port=80), '"false" is not an argument: one begins with --'),
        (["--"], Some(), '"--" is not an argument'),
        ([""], Some(), '"" is not an argument'),
    ],
)
def test_what_cannot_be_used_leaves_the_default_and_is_reported(arguments, expected, problem):
    found, (said,) = parse(Some, arguments)

    assert found == expected
    assert said.startswith(problem)


def test_a_secret_in_a_wrong_place_is_not_repeated():
    secret = "-----BEGIN RSA PRIVATE KEY-----MIIEpAIBAAKC"

    _, problems = parse(Some, [secret, f"--ssh-private-kye={secret}", "--ssh-private-kye", secret])

    assert len(problems) == 4
    assert not any("MII" in problem for problem in problems)


def test_a_plugin_without_arguments_knows_none():
    assert parse(NoArguments, ["--a=b"]) == (NoArguments(), ("unknown argument --a; there are none",))
