import pytest

from volcano_py.conf.arguments import (
    get_bool,
    get_float,
    get_int,
    get_natural,
    get_resource_weights,
    get_string,
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(15, 15, id="an-integer-counts"),
        pytest.param(-3, -3, id="a-negative-integer-counts"),
        pytest.param("15", 7, id="a-quoted-integer-does-not"),
        pytest.param(2**63 - 1, 2**63 - 1, id="the-greatest-of-64-bits-counts"),
        pytest.param(2**63, 7, id="a-greater-one-does-not"),
        pytest.param(10**5000, 7, id="a-huge-one-does-not"),
        pytest.param(5.0, 7, id="a-whole-float-does-not"),
        pytest.param(True, 7, id="a-boolean-does-not"),
        pytest.param("", 7, id="empty-text-does-not"),
        pytest.param(None, 7, id="null-does-not"),
    ],
)
def test_get_int(written, expected):
    said = []
    assert get_int({"key": written}, "key", 7, said.append) == expected
    assert len(said) == (expected == 7 and written is not None)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(1.5, 1.5, id="a-float-counts"),
        pytest.param(15, 15.0, id="an-integer-counts"),
        pytest.param("1.5", 1.2, id="a-quoted-number-does-not"),
        pytest.param(10**400, 1.2, id="a-huge-integer-does-not"),
        pytest.param(float("inf"), 1.2, id="infinity-does-not"),
        pytest.param(float("nan"), 1.2, id="nan-does-not"),
        pytest.param(True, 1.2, id="a-boolean-does-not"),
        pytest.param("", 1.2, id="empty-text-does-not"),
    ],
)
def test_get_float(written, expected):
    said = []
    assert get_float({"key": written}, "key", 1.2, said.append) == expected
    assert len(said) == (expected == 1.2)


@pytest.mark.parametrize(
    ("written", "default", "expected"),
    [
        pytest.param(True, False, True, id="a-boolean-counts"),
        *[
            pytest.param(text, False, True, id=f"text-{text}-is-true")
            for text in ("1", "t", "T", "TRUE", "true", "True")
        ],
        *[pytest.param(text, True, False, id=f"text-{text}-is-false") for text in ("0", "f", "F", "FALSE", "false")],
        pytest.param("yes", True, True, id="text-yes-leaves-the-default"),
        pytest.param("tRUE", False, False, id="odd-capitals-leave-the-default"),
        pytest.param(1, False, False, id="a-number-leaves-the-default"),
    ],
)
def test_get_bool(written, default, expected):
    assert get_bool({"key": written}, "key", default) is expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("text", "text", id="text-counts"),
        pytest.param("", "", id="empty-text-counts"),
        pytest.param(0, "default", id="a-number-does-not"),
        pytest.param(None, "default", id="null-does-not"),
    ],
)
def test_get_string(written, expected):
    assert get_string({"key": written}, "key", "default") == expected


@pytest.mark.parametrize("read", [get_int, get_float, get_bool, get_string])
def test_an_absent_argument_leaves_the_default_without_a_warning(read):
    warnings: list[str] = []

    assert read({"other": 1}, "key", 1, warnings.append) == 1
    assert warnings == []


def test_a_value_of_another_type_is_reported():
    warnings: list[str] = []

    get_int({"weight": "10"}, "weight", 1, warnings.append)

    assert warnings == ["argument weight is '10', which is not an integer; the default 1 is used"]


def test_a_negative_weight_is_reported():
    warnings: list[str] = []

    assert get_natural({"weight": -5}, "weight", 1, warnings.append) == 1
    assert get_natural({"weight": 0}, "weight", 1, warnings.append) == 0
    assert warnings == ["argument weight is -5, which is below 0; the default 1 is used"]


def test_weights_of_resources_are_those_of_the_list_and_of_cpu_and_memory():
    warnings: list[str] = []
    arguments = {"x.cpu": 3, "x.resources": "a/b, c", "x.resources.a/b": 2}

    found = get_resource_weights(arguments, "x.", warnings.append)

    assert (found, warnings) == ({"a/b": 2.0, "c": 1.0, "cpu": 3.0, "memory": 1.0}, [])


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        pytest.param(
            {"x.resources": "c", "x.resources.a/b": 2},
            "argument x.resources.a/b has no effect: add a/b to x.resources",
            id="not-in-the-list",
        ),
        pytest.param(
            {"x.resources": "cpu", "x.resources.cpu": 2},
            "argument x.resources.cpu has no effect: write x.cpu",
            id="has-a-key-of-its-own",
        ),
    ],
)
def test_a_weight_without_effect_is_reported(arguments, warning):
    warnings: list[str] = []

    get_resource_weights(arguments, "x.", warnings.append)

    assert warnings == [warning]
