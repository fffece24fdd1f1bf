"""The import hook behind `install_as_tensorflow`, and the version that libraries ask for."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import Distribution, DistributionFinder
from types import CodeType, FrameType, ModuleType
from typing import Any, Final, cast

from opdock import version
from opdock.api import logging
from opdock.codes import coded
from opdock.mapping import after_import, missing, modules, resolve

DISTRIBUTION: Final = "tensorflow"
# Modules that programs run with `python -m`, and whose code runs then.
_PROGRAMS: Final[dict[str, str]] = {
    "examples.label_image.label_image": "opdock.tools.label_image",
    "python.tools.freeze_graph": "opdock.tools.freeze_graph",
    "python.tools.import_pb_to_tensorboard": "opdock.tools.import_pb_to_tensorboard",
    "python.tools.inspect_checkpoint": "opdock.tools.inspect_checkpoint",
    "python.tools.optimize_for_inference": "opdock.tools.optimize_for_inference_lib",
    "python.tools.saved_model_cli": "opdock.tools.saved_model_cli",
    "python.tools.strip_unused": "opdock.tools.strip_unused_lib",
}
_IMPORT_SYSTEM: Final = frozenset({"importlib._bootstrap", "opdock._public"})


class RealTensorFlowError(ImportError):
    """TensorFlow itself is already imported: two of them in one process would be mixed."""


class Finder:
    """Finder and loader of one tree of mapped modules, `tensorflow` or `opdock`'s own names."""

    def __init__(self, root: str) -> None:
        self.root = root

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """The module's spec, if TF 1.15 has a module of this name."""
        root, _dot, path = name.partition(".")
        if root != self.root:
            return None
        if path and not resolve.is_module(path):
            if _in_from_import():
                raise missing.import_error(name)
            return None
        if path in _PROGRAMS:  # what `python -m` may run is no package
            return ModuleSpec(name, cast(Any, self))
        spec = ModuleSpec(name, cast(Any, self), is_package=True)
        spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module; names come when they are asked for."""
        return modules.Mapped(spec.name, self.root, spec.name.partition(".")[2])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""

    def is_package(self, name: str) -> bool:
        """TF's modules may have modules below them."""
        return True

    def get_code(self, name: str) -> CodeType | None:
        """What `python -m` runs, for the modules that are programs; others have no code."""
        place = _PROGRAMS.get(name.partition(".")[2])
        spec = None if place is None else importlib.util.find_spec(place)
        loader = None if spec is None else spec.loader
        return loader.get_code(place) if isinstance(loader, SourceFileLoader) and place else None

    def get_source(self, name: str) -> None:
        """There is no source."""


OWN_NAMES: Final = Finder("opdock")


def _in_from_import() -> bool:
    """Whether Python looks for a module because `from package import name` found no such name.

    Its own error would say nothing of why the name is not there.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _IMPORT_SYSTEM:
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


class TensorFlowFinder(Finder):
    """The tree `tensorflow`, with the distribution that `importlib.metadata` finds for it."""

    def exec_module(self, module: ModuleType) -> None:
        """Readies TF's logger when TensorFlow is imported: programs know that it has a handler.

        It gets none where the program configured logging before, so this must not be sooner.
        """
        if module.__name__ == DISTRIBUTION:
            logging.get_logger()

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """TensorFlow's metadata, as far as libraries read it."""
        name = None if context is None else context.name
        if name is not None and name.lower().replace("_", "-") == DISTRIBUTION:
            yield _Metadata()


class _Metadata(Distribution):
    """The metadata of the TensorFlow that opdock stands in for."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version.VERSION}\n"

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"opdock stands in for TensorFlow: there is no file {path!r}")


def install_as_tensorflow() -> ModuleType:
    """Makes `import tensorflow` mean opdock in this process, whatever is installed.

    Programs and libraries that import `tensorflow`, its public submodules, `tensorflow.contrib` or
    its internal tree `tensorflow.python` get TensorFlow 1.15's names from opdock; a name that
    opdock does not have raises AttributeError, or ImportError in a `from` import, when it is used.
    Calling it again changes nothing.

    Returns:
        The module `tensorflow`.

    Raises:
        RealTensorFlowError: TensorFlow itself has been imported before.
    """
    be_found_as_tensorflow()
    return importlib.import_module(DISTRIBUTION)


def be_found_as_tensorflow() -> None:
    """Does what `install_as_tensorflow` does, but leaves the import to the program."""
    present = sys.modules.get("tensorflow")
    if present is not None and not isinstance(present, modules.Mapped):
        told = (
            f"TensorFlow is already imported, from {getattr(present, '__file__', None)!r}: call "
            "opdock.install_as_tensorflow() before anything imports it, or use `opdock run`"
        )
        raise RealTensorFlowError(coded("OPD-NAME-004", told), name="tensorflow")
    if not any(isinstance(finder, TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, cast(Any, TensorFlowFinder("tensorflow")))
        _tell_pkg_resources()
        after_import.do("tf_keras", _help_keras)
        after_import.do("tensorflow_estimator.python.estimator.run_config", _share_settings)
        after_import.do("tensorflow_probability.python.distributions", _share_distributions)


def _help_keras(module: ModuleType) -> None:
    from opdock.legacy import put_back_for_keras

    put_back_for_keras()


def _share_settings(theirs: ModuleType) -> None:
    """Lets estimators take settings of `tf.contrib.learn`, once both are there."""
    after_import.do("opdock.contrib.learn.run_config", lambda ours: ours.become(theirs.RunConfig))


def _share_distributions(theirs: ModuleType) -> None:
    from opdock.distributions.sharing import share_with

    share_with(theirs)


def _tell_pkg_resources() -> None:
    """Lets setuptools' older way of asking for versions find it too, now or once it is imported."""

    def add(module: ModuleType) -> None:
        found = module.Distribution(
            location=None, project_name=DISTRIBUTION, version=version.VERSION
        )
        module.working_set.add(found, replace=True)

    after_import.do("pkg_resources", add)
