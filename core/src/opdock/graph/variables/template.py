"""`make_template`: a function that makes its variables once and shares them ever after."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.variables.eager_store import EagerVariableStore
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.graph.variables.trackable import Trackable, Weighted
from opdock.graph.variables.variable_scope import VariableScope, variable_scope, variable_store

__all__ = ["capture_dependencies", "make_template"]


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """Makes `func_` share the variables that `tf.get_variable` makes in it between all calls.

    Args:
        name_: the name of the variable scope, made unique.
        func_: the function; it makes variables with `tf.get_variable`.
        create_scope_now_: take the scope's name now instead of at the first call.
        unique_name_: the name of the scope as it is; two templates of one name share variables.
        custom_getter_: a custom getter for the scope.
        **kwargs: arguments to bind to `func_`.

    Returns:
        A function that opens the scope and calls `func_`.

    Raises:
        ValueError: `unique_name_` with `create_scope_now_`, or where operations run as they are
            made; or, at a later call, a new trainable variable.
    """
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)


@contextlib.contextmanager
def capture_dependencies(template: Any) -> Iterator[None]:
    """Makes variables dependencies of a trackable object, by their names within its scope.

    An object that does the same further inside is a dependency instead of its variables.

    Args:
        template: the object; its `variable_scope` is open.
    """
    prefix = template.variable_scope.name

    def create(
        next_creator: Callable[..., Any], name: str | None = None,
        trackable_parent: tuple[Trackable, str] | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        made = next_creator(name=name, trackable_parent=(template, prefix), **kwargs)
        if name is not None and name.startswith(prefix):
            dependency, path = trackable_parent or (made, name)
            if isinstance(dependency, Trackable):
                local = path[len(prefix) :].removeprefix("/")
                template._track_trackable(dependency, local, overwrite=True)
        return made

    with variable_creator_scope(create):
        yield


class Template(Weighted, Trackable):
    """A function with variables of its own; see `make_template`.

    Checkpoints save the variables by their names within the scope.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        if create_scope_now and unique_name is not None:
            raise ValueError("unique_name_ cannot be given together with create_scope_now_.")
        eager = get_default_graph().eager
        if eager and unique_name is not None:
            # TensorFlow's spelling, which programs' tests look for.
            raise ValueError("unique_name_ cannot be used when eager exeuction is enabled.")
        self._name = name
        self._func = func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._scope: VariableScope | None = None
        self._variables_created = False
        # Where operations run as they are made, nobody else keeps its variables but a template
        # around it.
        around = variable_store()
        self._template_store = (
            EagerVariableStore(around if around.keeps else None) if eager else None
        )
        if create_scope_now:
            with self._open(auxiliary_name_scope=False) as scope:
                self._scope = scope

    def _open(self, **kwargs: Any) -> variable_scope:
        return variable_scope(
            self._unique_name, self._name, custom_getter=self._custom_getter, **kwargs
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kept = self._template_store  # Sonnet looks for it by this name, as it is TF's
        with contextlib.nullcontext() if kept is None else kept.as_default():
            return self._called(*args, **kwargs)

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        if self._scope is not None:
            with variable_scope(self._scope, reuse=self._variables_created):
                return self._call(*args, **kwargs)
        with self._open() as scope:
            self._scope = scope
            return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        before = self._trained()
        if not self._variables_created:
            with capture_dependencies(self):
                result = self._func(*args, **kwargs)
        else:
            result = self._func(*args, **kwargs)
            known = {id(v) for v in before}
            made = [v.name for v in self._trained() if id(v) not in known]
            if made:
                raise ValueError(
                    "Trainable variable created when calling a template after the first time, "
                    "perhaps you used tf.Variable when you meant tf.get_variable: "
                    f"{', '.join(made)} (template '{self._name}')"
                )
        self._variables_created = True
        return result

    def _trained(self) -> list[Any]:
        """The trainable variables that there are, the template's or not."""
        if self._template_store is not None:
            return self._template_store.trainable_variables()
        return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def name(self) -> str:
        """The name that was asked for."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of the variables, None before the first call."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """The scope's name with a slash at its end, None before the first call."""
        if self._scope is None:
            return None
        name = self._scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    def _collection(self, key: str) -> list[Any]:
        if self._scope is None:
            return []
        if self._template_store is not None:
            wanted = {
                GraphKeys.TRAINABLE_VARIABLES: self._template_store.trainable_variables,
                GraphKeys.GLOBAL_VARIABLES: self._template_store.variables,
            }
            found = wanted[key]() if key in wanted else []
            return [v for v in found if v.name.startswith(str(self.variable_scope_name))]
        return list(get_default_graph().get_collection(key, self.variable_scope_name))

    @property
    def trainable_weights(self) -> list[Any]:
        """The trainable variables made so far."""
        return self._collection(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables made so far that are not trainable."""
        trainable = self.trainable_weights
        return [v for v in self.weights if not any(v is t for t in trainable)]

    @property
    def weights(self) -> list[Any]:
        """The global and local variables made so far."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Any]:
        """The global variables made so far."""
        return self._collection(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables made so far."""
        return self._collection(GraphKeys.LOCAL_VARIABLES)
