"""Every hook, its arguments and every quarantine kind stand in docs/plugin_hooks.md."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from opdock.plugins import hookspecs, state

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "plugin_hooks.md").read_text(
    encoding="utf-8"
)
SECTIONS = {
    match.group(1): (match.group(2), match.group(3))
    for match in re.finditer(r"^### `(\w+)\((.*?)\)`\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
}
HOOKS = {
    name: function
    for group in hookspecs.GROUPS
    for name, function in vars(group).items()
    if name.startswith("opdock_")
}


def arguments(hook):
    return [a for a in inspect.signature(HOOKS[hook]).parameters if a != "self"]


def test_the_page_has_exactly_the_hooks():
    assert list(SECTIONS) == list(HOOKS)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_documented_with_its_arguments(hook):
    signature, text = SECTIONS[hook]
    assert signature == ", ".join(arguments(hook))
    for argument in arguments(hook):
        assert f"\n- `{argument}`: " in text
    assert "```python" in text and f"def {hook}({signature})" in text


@pytest.mark.parametrize("hook", HOOKS)
def test_a_docstring_has_arguments_and_a_full_example(hook):
    doc = inspect.getdoc(HOOKS[hook])
    assert "Example:" in doc and "@hookimpl" in doc and f"def {hook}(" in doc
    assert "Yields:" in doc or "Returns:" in doc
    for argument in arguments(hook):
        assert re.search(rf"^    {argument}: ", doc, re.MULTILINE), argument


@pytest.mark.parametrize("hook", HOOKS)
def test_an_example_compiles(hook):
    doc = inspect.getdoc(HOOKS[hook])
    example = doc[doc.index("Example:") + len("Example:") :]
    compile(inspect.cleandoc(example), hook, "exec")


def test_every_kind_is_explained():
    table = PAGE[PAGE.index("| kind |") :]
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+|blocked|duplicate)`", table)) == set(state.KINDS)
