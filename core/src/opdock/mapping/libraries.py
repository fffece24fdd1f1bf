"""Parts of TensorFlow that have become libraries of their own, and are found there if installed.

`tf.contrib.slim` lives on as tf_slim, with most of `tf.contrib.layers` and its like, `tf.keras` is
tf_keras, or Keras 2.2 where that is all there is, `tf.estimator` and the estimators of
`tf.contrib.tpu` are tensorflow-estimator, and `tf.contrib.distributions` is TensorFlow Probability.
They are the libraries as they were published: they import `tensorflow`, so the first name that
comes from one makes `import tensorflow` mean opdock in this process.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, Final

from opdock.mapping import keras_tables

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Library:
    """A distribution, the versions of it that fit, and the extra of opdock that brings it."""

    module: str
    distribution: str
    versions: tuple[str, ...]
    extra: str


SLIM: Final = Library("tf_slim", "tf_slim", ("1.",), "slim")
# What tf.keras of TensorFlow became; later ones require TensorFlow itself.
TF_KERAS: Final = Library("tf_keras", "tf_keras", ("2.15.0",), "keras")
# Later ones lean on the tf.keras that TensorFlow brings, or are no longer TF 1's.
KERAS: Final = Library("keras", "Keras", ("2.2.",), "keras")
ESTIMATOR: Final = Library("tensorflow_estimator", "tensorflow-estimator", ("1.15.",), "estimator")
# The versions beside TensorFlow 1.14 and 1.15; later ones ask for 2.
PROBABILITY: Final = Library(
    "tensorflow_probability", "tensorflow-probability", ("0.7.", "0.8."), "probability"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the names of a module of TensorFlow's are in a library.

    `modules` are asked for names, in this order; `package` has the modules below. `other` is where
    they are if that library is not there. What a library `leads` in comes from it even where opdock
    has a name of its own. `renamed` has pairs of a name and the library's own for it.
    """

    library: Library
    package: str
    modules: tuple[str, ...]
    other: Place | None = None
    leads: bool = False
    renamed: tuple[tuple[str, str], ...] = ()

    def below(self, rest: str) -> Place:
        """The place of a module below, `rest` being ".name"."""
        module = self.package + rest
        other = None if self.other is None else self.other.below(rest)
        return Place(self.library, module, (module,), other, self.leads, self.renamed)

    def chosen(self) -> Place:
        """This one, or the other where only that one's library is there."""
        if self.other is None or installed(self.library) or not installed(self.other.library):
            return self
        return self.other


def _places(
    library: Library, package: str, paths: str, *modules: str, **own_names: str
) -> dict[str, Place]:
    place = Place(library, package, modules or (package,), renamed=tuple(own_names.items()))
    return dict.fromkeys(paths.split(), place)


def _keras() -> dict[str, Place]:
    """Where the names of tf.keras are in tf_keras, or else in Keras 2.2."""
    older = {
        **_places(KERAS, "keras", "keras python.keras"),
        **_places(
            KERAS, "keras.layers", "keras.layers python.keras.layers",
            "keras.layers", "keras.layers.wrappers",
        ),
    }  # fmt: skip
    newer = {
        path: Place(TF_KERAS, package, tuple(modules), leads=True)
        for path, (package, *modules) in keras_tables.PLACES.items()
    }
    found = {}
    for path in {*newer, *older}:
        place = _below(newer, path)
        assert place is not None
        found[path] = replace(place, other=_below(older, path))
    # Where it stood before it was TensorFlow's.
    before = {f"contrib.{path}": place for path, place in found.items() if path.startswith("keras")}
    return found | before


def _below(places: dict[str, Place], path: str) -> Place | None:
    """Where a module is that stands below the nearest one of these."""
    head, rest = path, ""
    while head not in places:
        head, _, last = head.rpartition(".")
        if not head:
            return None
        rest = f".{last}{rest}"
    return places[head].below(rest) if rest else places[head]


_PROBABILITY: Final = "tensorflow_probability.python"
# What it has dropped of tf.contrib.distributions; conditions are arguments of all others now.
_DISTRIBUTIONS: Final = {
    "ConditionalDistribution": "Distribution",
    "ConditionalTransformedDistribution": "TransformedDistribution",
    **{
        name: f"opdock.distributions.dropped:{name}"
        for name in (
            "Chi2WithAbsDf", "InverseGammaWithSoftplusConcentrationRate",
            "MultivariateNormalDiagWithSoftplusScale", "WishartCholesky", "WishartFull",
        )
    },
}  # fmt: skip
_BIJECTORS: Final = {"ConditionalBijector": "Bijector"}
_LINEAR_OPTIMIZER: Final = (
    "tensorflow_estimator.python.estimator.canned.linear_optimizer.python.utils"
)

# By the path of TensorFlow's module; what stands below one is below the package.
PLACES: Final[dict[str, Place]] = {
    **_places(
        SLIM, "tf_slim.ops", "contrib.framework contrib.framework.python.ops",
        "tf_slim.ops.arg_scope", "tf_slim.ops.variables", "tf_slim.ops.framework_ops",
    ),
    **_places(SLIM, "tf_slim.layers", "contrib.layers contrib.layers.python.layers"),
    **_places(SLIM, "tf_slim.losses", "contrib.losses contrib.losses.python.losses"),
    **_places(SLIM, "tf_slim.metrics", "contrib.metrics contrib.metrics.python.ops"),
    **_places(
        SLIM, "tf_slim", "contrib.slim contrib.slim.python.slim",
        "tf_slim", "tf_slim.ops.arg_scope",
    ),
    **_places(
        SLIM, "tf_slim.training", "contrib.training contrib.training.python.training",
        "tf_slim.training.training", "tf_slim.training.evaluation",
    ),
    **_places(
        PROBABILITY, f"{_PROBABILITY}.distributions", "contrib.distributions",
        f"{_PROBABILITY}.distributions", f"{_PROBABILITY}.stats", **_DISTRIBUTIONS,
    ),
    **_places(
        PROBABILITY, f"{_PROBABILITY}.distributions", "contrib.distributions.python.ops",
        **_DISTRIBUTIONS,
    ),
    **{
        path: Place(
            PROBABILITY, f"{_PROBABILITY}.{place}", (f"{_PROBABILITY}.{place}",),
            renamed=tuple({**_DISTRIBUTIONS, **_BIJECTORS}.items()),
        )
        for path, place in {
            "contrib.distributions.bijectors": "bijectors",
            "contrib.distributions.python.ops.bijectors": "bijectors",
            "contrib.distributions.python.ops.bijectors.conditional_bijector": "bijectors.bijector",
            "contrib.distributions.python.ops.conditional_distribution": (
                "distributions.distribution"
            ),
            "contrib.distributions.python.ops.conditional_transformed_distribution": (
                "distributions.transformed_distribution"
            ),
            "contrib.distributions.python.ops.distribution_util": "internal.distribution_util",
            "contrib.distributions.python.ops.moving_stats": "distributions.internal.moving_stats",
            "contrib.distributions.python.ops.sample_stats": "stats",
            # 0.7 has it among the distributions, 0.8 beside them; both name it there.
            "contrib.distributions.python.ops.seed_stream": "distributions",
            "python.ops.distributions.bijector": "bijectors.bijector",
            "python.ops.distributions.bijector_impl": "bijectors.bijector",
            "python.ops.distributions.identity_bijector": "bijectors.identity",
            "python.ops.distributions.transformed_distribution": (
                "distributions.transformed_distribution"
            ),
        }.items()
    },
    # An estimator for TPUs is one for any device where it is told so (use_tpu=False).
    **_places(
        ESTIMATOR, "tensorflow_estimator.python.estimator.tpu",
        "contrib.tpu contrib.tpu.python.tpu",
        "tensorflow_estimator.python.estimator.tpu.tpu_estimator",
        "tensorflow_estimator.python.estimator.tpu.tpu_config",
    ),
    **_places(
        ESTIMATOR, _LINEAR_OPTIMIZER,
        " ".join(f"contrib.linear_optimizer{module}" for module in ("", *(
            f".python.ops.{own}"
            for own in ("sdca_ops", "sharded_mutable_dense_hashtable", "sparse_feature_column")
        ))),
        f"{_LINEAR_OPTIMIZER}.sdca_ops", f"{_LINEAR_OPTIMIZER}.sharded_mutable_dense_hashtable",
        SdcaModel="_SDCAModel", SparseFeatureColumn="_SparseFeatureColumn",
        ShardedMutableDenseHashTable="_ShardedMutableDenseHashTable",
    ),
    **_places(ESTIMATOR, "tensorflow_estimator._api.v1.estimator", "estimator"),
    **_places(ESTIMATOR, "tensorflow_estimator.python.estimator", "python.estimator"),
    **_places(ESTIMATOR, "tensorflow_estimator.contrib.estimator", "contrib.estimator"),
    **_keras(),
    # tf_keras looks for it where estimators of TensorFlow 2 have it.
    **_places(ESTIMATOR, "tensorflow_estimator.python.estimator.keras", "keras.estimator"),
}  # fmt: skip


def place_of(path: str) -> Place | None:
    """Where the names of a module of TensorFlow's are in a library, installed or not."""
    found = _below(PLACES, path)
    return None if found is None else found.chosen()


def leads(path: str) -> bool:
    """Whether a module's names are an installed library's before they are opdock's own."""
    place = place_of(path)
    return place is not None and place.leads and installed(place.library)


def library_of(path: str) -> Library | None:
    """The library in which a name of TensorFlow's is looked up, installed or not."""
    place = place_of(path)
    return None if place is None else place.library


@functools.cache
def installed(library: Library) -> bool:
    """Whether a version that fits is there."""
    if importlib.util.find_spec(library.module) is None:
        return False
    try:
        return metadata.version(library.distribution).startswith(library.versions)
    except metadata.PackageNotFoundError:
        return False


def lookup(path: str, name: str, default: Any) -> Any:
    """What an installed library has for a name of a TensorFlow module; else `default`."""
    place = place_of(path)
    if place is None or name.startswith("__") or not installed(place.library):
        return default
    if f"{path}.{name}" in keras_tables.ELSEWHERE and place.library is TF_KERAS:
        module, _, name = keras_tables.ELSEWHERE[f"{path}.{name}"].partition(":")
        return getattr(_loaded(module), name)
    wanted = dict(place.renamed).get(name, name)
    made_of_it, _, own_name = wanted.rpartition(":")
    if made_of_it:
        return getattr(_loaded(made_of_it), own_name)
    for module in filter(_exists, place.modules):
        found = getattr(_loaded(module), wanted, _ABSENT)
        if found is not _ABSENT:
            return found
    below = f"{place.package}.{name}"
    return _loaded(below) if _exists(below) else default


def public_names(path: str) -> list[str]:
    """The names that an installed library gives a TensorFlow module."""
    place = place_of(path)
    if place is None or not installed(place.library):
        return []
    found: set[str] = {name for name, _ in place.renamed}
    for module in map(_loaded, filter(_exists, place.modules)):
        found.update(getattr(module, "__all__", None) or dir(module))
    return sorted(n for n in found if not n.startswith("_"))


def is_module(path: str) -> bool:
    """Whether an installed library has a module in the place of TensorFlow's."""
    place = place_of(path)
    return place is not None and installed(place.library) and _exists(place.package)


def owns(value: object) -> bool:
    """Whether a module is one of such a library's."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _ROOTS


_ROOTS: Final = frozenset(
    place.library.module
    for one in PLACES.values()
    for place in (one, one.other)
    if place is not None
)


def hint(path: str, name: str) -> str | None:
    """What to install for a name that a library has; None where none is missing."""
    library = library_of(f"{path}.{name}".lstrip("."))
    if library is None or installed(library):
        return None
    wanted = " or ".join(f"{v}*" if v.endswith(".") else v for v in library.versions)
    return (
        f"it may be in the library {library.distribution} {wanted}, which is not installed "
        f"(pip install 'opdock[{library.extra}]')"
    )


def _loaded(module: str) -> ModuleType:
    root: Any = importlib.import_module(
        "opdock"
    )  # the public function: its module imports this one
    root.install_as_tensorflow()
    try:
        return importlib.import_module(module)
    except (ImportError, AttributeError) as error:
        error.add_note(
            "Libraries of TensorFlow 1's years lean on names that others have removed since: "
            "`opdock run` puts them back."
        )
        raise


@functools.cache
def _exists(module: str) -> bool:
    """Whether there is such a module; nothing is imported to know it."""
    root, *parts = module.split(".")
    spec = importlib.util.find_spec(root)
    name = root
    for part in parts:
        places = None if spec is None else spec.submodule_search_locations
        name = f"{name}.{part}"
        spec = PathFinder.find_spec(name, list(places)) if places else None
    return spec is not None
