"""`tf.contrib.predictor`: an exported or trained model as a function of a dict of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.session import Session
from opdock.saved_model import loader, signature_constants
from opdock.train.checkpoint_management import latest_checkpoint
from opdock.train.loops.monitored_session import ChiefSessionCreator, MonitoredSession

__all__ = [
    "ContribEstimatorPredictor", "CoreEstimatorPredictor", "Predictor", "SavedModelPredictor",
    "from_contrib_estimator", "from_estimator", "from_saved_model",
]  # fmt: skip

_DEFAULT_KEY = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Predictor:
    """A graph, a session that has its variables, and tensors to feed and to fetch by name.

    Args:
        graph: the graph.
        session: the session, which stays open.
        inputs: the names of the tensors to feed, by the keys of what is given.
        outputs: the names of the tensors to fetch, by the keys of what is returned.
    """

    def __init__(
        self, graph: Graph, session: Any, inputs: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        self._graph = graph
        self._session = session
        self._feed_tensors = {k: graph.get_tensor_by_name(name) for k, name in inputs.items()}
        self._fetch_tensors = {k: graph.get_tensor_by_name(name) for k, name in outputs.items()}

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the model.

        Args:
            input_dict: arrays by key; a key with None, or none, is not fed.

        Returns:
            The outputs by key.

        Raises:
            ValueError: there is a key that the model does not have.
        """
        unexpected = set(input_dict) - set(self._feed_tensors)
        if unexpected:
            raise ValueError(
                f"Got unexpected keys in input_dict: {unexpected}\n"
                f"expected: {set(self._feed_tensors)}"
            )
        given = {k: value for k, value in input_dict.items() if value is not None}
        fed = {self._feed_tensors[key]: value for key, value in given.items()}
        result: dict[str, Any] = self._session.run(self._fetch_tensors, feed_dict=fed)
        return result

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph

    @property
    def session(self) -> Any:
        """The session."""
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Tensor]:
        """The tensors to feed, by key."""
        return self._feed_tensors

    @property
    def fetch_tensors(self) -> dict[str, Tensor]:
        """The tensors to fetch, by key."""
        return self._fetch_tensors

    def __repr__(self) -> str:
        return (
            f"Predictor with feed tensors {self._feed_tensors} and fetch_tensors"
            f" {self._fetch_tensors}"
        )


class SavedModelPredictor(Predictor):
    """A predictor of a SavedModel.

    Args:
        export_dir: the directory of the SavedModel.
        signature_def_key: which signature, the default one for serving when None.
        signature_def: a `SignatureDef` of one's own, in its place.
        input_names: names of tensors to feed by key, and
        output_names: of tensors to fetch, in the place of a signature.
        tags: of the meta graph, with commas between them; "serve" when None.
        graph: the graph into which to load, a new one when None.
        config: a `ConfigProto` of the session.

    Raises:
        ValueError: there is more than one of key, signature and names, or there is no such
            signature.
    """

    def __init__(
        self,
        export_dir: Any, signature_def_key: str | None = None, signature_def: Any = None,
        input_names: Mapping[str, str] | None = None, output_names: Mapping[str, str] | None = None,
        tags: str | None = None, graph: Graph | None = None, config: Any = None,
    ) -> None:  # fmt: skip
        ways = (signature_def_key, signature_def, input_names and output_names)
        if sum(way is not None for way in ways) > 1 or bool(input_names) != bool(output_names):
            raise ValueError(
                "You must specify at most one of signature_def_key OR signature_def OR"
                "(input_names AND output_names)."
            )
        graph = graph or Graph()
        with graph.as_default():
            session = Session(config=config, graph=graph)
            loaded = loader.load(session, (tags or "serve").split(","), export_dir)
        if input_names and output_names:
            super().__init__(graph, session, input_names, output_names)
            return
        if signature_def is None:
            key = signature_def_key or _DEFAULT_KEY
            if key not in loaded.signature_def:
                raise ValueError(
                    f'Got signature_def_key "{key}". Available signatures are'
                    f" {sorted(loaded.signature_def)}. Original error: {key!r}"
                )
            signature_def = loaded.signature_def[key]
        super().__init__(graph, session, *_names_of(signature_def))


def from_saved_model(
    export_dir: Any, signature_def_key: str | None = None, signature_def: Any = None,
    input_names: Mapping[str, str] | None = None, output_names: Mapping[str, str] | None = None,
    tags: str | None = None, graph: Graph | None = None, config: Any = None,
) -> Predictor:  # fmt: skip
    """`SavedModelPredictor` of the same arguments."""
    return SavedModelPredictor(
        export_dir, signature_def_key, signature_def, input_names, output_names, tags, graph, config
    )


class CoreEstimatorPredictor(Predictor):
    """A predictor of a trained `tf.estimator.Estimator`, from its last checkpoint.

    Args:
        estimator: the estimator.
        serving_input_receiver_fn: makes the `ServingInputReceiver` of what will be given.
        output_key: which of the `export_outputs` of its model, the default one when None.
        graph: the graph to build in, a new one when None.
        config: a `ConfigProto` of the session.

    Raises:
        KeyError: the model has no such output.
    """

    def __init__(
        self,
        estimator: Any, serving_input_receiver_fn: Callable[[], Any], output_key: str | None = None,
        graph: Graph | None = None, config: Any = None,
    ) -> None:  # fmt: skip
        graph = graph or Graph()
        with graph.as_default():
            receiver = serving_input_receiver_fn()
            spec = estimator.model_fn(receiver.features, None, "infer", estimator.config)
            key = output_key or _DEFAULT_KEY
            outputs = spec.export_outputs or {}
            if key not in outputs:
                raise KeyError(f"output_key must be one of {sorted(outputs)}; got {key}")
            signature = outputs[key].as_signature_def(receiver.receiver_tensors)
            creator = ChiefSessionCreator(
                config=config, checkpoint_filename_with_path=latest_checkpoint(estimator.model_dir)
            )
            session = MonitoredSession(session_creator=creator)
        super().__init__(graph, session, *_names_of(signature))


def from_estimator(
    estimator: Any, serving_input_receiver_fn: Callable[[], Any], output_key: str | None = None,
    graph: Graph | None = None, config: Any = None,
) -> Predictor:  # fmt: skip
    """`CoreEstimatorPredictor` of the same arguments.

    Raises:
        TypeError: it is an estimator of `tf.contrib.learn`.
    """
    if _is_of_learn(estimator):
        raise TypeError(
            "Expected estimator to be of type tf.estimator.Estimator, but got type "
            f"{type(estimator)}. You likely want to call `from_contrib_estimator`."
        )
    return CoreEstimatorPredictor(estimator, serving_input_receiver_fn, output_key, graph, config)


class ContribEstimatorPredictor(Predictor):
    """A predictor of a trained estimator of `tf.contrib.learn`, from its last checkpoint.

    Args:
        estimator: the estimator.
        prediction_input_fn: makes the `InputFnOps` of what will be given.
        input_alternative_key: which of its ways to ask, the default one when None.
        output_alternative_key: which head, the default one when None.
        graph: the graph to build in, a new one when None.
        config: a `ConfigProto` of the session.

    Raises:
        NotImplementedError: it is an estimator of `tf.estimator`.
        ValueError: there is no such head, or there are several and none is named.
    """

    def __init__(
        self,
        estimator: Any, prediction_input_fn: Callable[[], Any],
        input_alternative_key: str | None = None, output_alternative_key: str | None = None,
        graph: Graph | None = None, config: Any = None,
    ) -> None:  # fmt: skip
        if not _is_of_learn(estimator):
            raise NotImplementedError(
                "Estimator is not of tf.contrib.learn. You should probably use `from_estimator`."
            )
        from opdock.contrib.learn import exporting

        graph = graph or Graph()
        with graph.as_default():
            asked, features = exporting.get_input_alternatives(prediction_input_fn())
            made = estimator._get_predict_ops(features)
            creator = ChiefSessionCreator(
                config=config, checkpoint_filename_with_path=latest_checkpoint(estimator.model_dir)
            )
            session = MonitoredSession(session_creator=creator)
        fed = asked[input_alternative_key or exporting.DEFAULT_INPUT_ALTERNATIVE_KEY]
        heads, key = exporting.get_output_alternatives(made, output_alternative_key)
        _, fetched = heads[key]
        names = ({name: tensor.name for name, tensor in part.items()} for part in (fed, fetched))
        super().__init__(graph, session, *names)


def from_contrib_estimator(
    estimator: Any, prediction_input_fn: Callable[[], Any],
    input_alternative_key: str | None = None, output_alternative_key: str | None = None,
    graph: Graph | None = None, config: Any = None,
) -> Predictor:  # fmt: skip
    """`ContribEstimatorPredictor` of the same arguments.

    Raises:
        TypeError: it is an estimator of `tf.estimator`.
    """
    if not _is_of_learn(estimator):
        raise TypeError(
            "Expected estimator to be of type tf.contrib.learn.Estimator, but got type "
            f"{type(estimator)}. You likely want to call `from_estimator`."
        )
    return ContribEstimatorPredictor(
        estimator, prediction_input_fn, input_alternative_key, output_alternative_key, graph, config
    )


def _is_of_learn(estimator: Any) -> bool:
    return hasattr(estimator, "_get_predict_ops")


def _names_of(signature: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The names of what a signature is fed, and of what it gives, by key."""
    inputs = {key: info.name for key, info in signature.inputs.items()}
    outputs = {key: info.name for key, info in signature.outputs.items()}
    return inputs, outputs
