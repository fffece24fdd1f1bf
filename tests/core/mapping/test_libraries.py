"""Parts of TensorFlow that are libraries: found where installed, told where not.

The libraries here are made up, with the names and versions of the real ones; `make libraries` runs
the tests of those.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

START = "opdock.install_as_tensorflow()"
FILES = {
    "tf_slim/__init__.py": """
import tensorflow.compat.v1 as tf
from tf_slim.layers import *
from tf_slim.data import decoder
two = tf.constant(2)
""",
    "tf_slim/layers/__init__.py": "def conv2d():\n    return 'slim'\n",
    "tf_slim/layers/utils.py": "name = 'utils'\n",
    "tf_slim/ops/__init__.py": "",
    "tf_slim/ops/arg_scope.py": "def arg_scope():\n    return 'scope'\n",
    "tf_slim/ops/variables.py": "model_variable = 1\n",
    "tf_slim/nets/__init__.py": "",
    "tf_slim/nets/vgg.py": "vgg_16 = 16\n",
    "tf_slim/data/__init__.py": "",
    "tf_slim/data/decoder.py": "",
    "tf_slim-1.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tf_slim\nVersion: 1.1.0\n",
    "keras/__init__.py": "from keras import layers\n",
    "keras/layers/__init__.py": "import tensorflow\nclass Dense:\n    pass\n",
}


# Stands before the one that is installed.
NO_TF_KERAS = {
    "tf_keras-0.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: tf_keras\nVersion: 0.1\n"
}


def metadata_of_keras(version: str) -> dict[str, str]:
    text = f"Metadata-Version: 2.1\nName: Keras\nVersion: {version}\n"
    return {f"Keras-{version}.dist-info/METADATA": text}


@pytest.fixture
def installed(tmp_path: Path):
    """Runs a program where these files are, and gives what it prints."""

    def run(
        files: dict[str, str], source: str, start: str = "opdock.install_as_tensorflow()"
    ) -> str:
        for name, text in {**NO_TF_KERAS, **files}.items():
            place = tmp_path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", f"import opdock\n{start}\n{source}"],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_contrib_is_one_with_the_library(installed) -> None:
    installed(FILES, """
import tensorflow as tf, sys
slim = tf.contrib.slim
assert "tf_slim" not in sys.modules
assert slim.conv2d() == "slim" and slim.conv2d is tf.contrib.layers.conv2d
assert slim.arg_scope is tf.contrib.framework.arg_scope
from tensorflow.contrib.framework.python.ops import arg_scope, add_arg_scope
assert arg_scope() == "scope" and add_arg_scope.__module__.startswith("opdock.")
from tensorflow.contrib.slim.nets import vgg
from tensorflow.contrib.slim.python.slim.nets.vgg import vgg_16
import tensorflow.contrib.slim as again
from tensorflow.contrib.layers.python.layers import utils
assert vgg_16 == vgg.vgg_16 == 16 and again is slim and utils.name == "utils"
assert slim.decoder.__name__ == "tf_slim.data.decoder" and slim.two.graph is tf.get_default_graph()
assert tf.contrib.layers.l2_regularizer(0.1)  # what the library lacks is opdock's own
""")  # fmt: skip


def test_distributions_are_the_library_of_the_right_version(installed) -> None:
    files = {
        "tensorflow_probability/__init__.py": "",
        "tensorflow_probability/python/__init__.py": "",
        "tensorflow_probability/python/distributions/__init__.py": "\n".join(
            f"class {name}: pass"
            for name in ("Normal", "Chi2", "InverseGamma", "MultivariateNormalDiag", "Wishart")
        ),
        "tensorflow_probability/python/bijectors/__init__.py": "class Exp: pass",
        "tensorflow_probability-0.8.0.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: tensorflow-probability\nVersion: 0.8.0\n"
        ),
    }
    installed(files, """
import tensorflow as tf
from tensorflow.contrib import distributions
from tensorflow.contrib.distributions import bijectors
assert tf.contrib.distributions is distributions and "Normal" in dir(distributions)
assert distributions.Normal.__module__ == "tensorflow_probability.python.distributions"
assert bijectors.Exp is tf.contrib.distributions.bijectors.Exp
""")  # fmt: skip


def test_what_moved_between_the_modules_of_distributions_is_found(installed) -> None:
    top = "tensorflow_probability/python"
    files = {
        **dict.fromkeys(
            (f"{top}/{part}__init__.py" for part in ("../", "", "internal/", "bijectors/")), ""
        ),
        f"{top}/distributions/__init__.py": (
            "from .wishart import Wishart\n"
            "class Distribution: pass\n"
            "class Chi2: pass\nclass InverseGamma: pass\nclass MultivariateNormalDiag: pass\n"
            "class SeedStream: pass\n"
        ),
        f"{top}/distributions/wishart.py": "class Wishart: pass",
        f"{top}/distributions/transformed_distribution.py": "class TransformedDistribution: pass",
        f"{top}/distributions/internal/__init__.py": "",
        f"{top}/distributions/internal/moving_stats.py": "moving_mean_variance = 'moving'",
        f"{top}/stats/__init__.py": "percentile = 'percentile'\nhistogram = 'newer'",
        f"{top}/internal/distribution_util.py": "make_tril_scale = 'scale'",
        f"{top}/bijectors/bijector.py": "class Bijector: pass",
        "tensorflow_probability-0.7.0.dist-info/METADATA": (
            "Metadata-Version: 2.1\nName: tensorflow-probability\nVersion: 0.7.0\n"
        ),
    }
    installed(files, """
import tensorflow as tf
tfd = tf.contrib.distributions
from tensorflow.contrib.distributions.python.ops import distribution_util, moving_stats
from tensorflow.contrib.distributions.python.ops import sample_stats, wishart
from tensorflow.python.ops.distributions import bijector, transformed_distribution
from tensorflow.contrib.distributions.python.ops import conditional_transformed_distribution
from tensorflow.contrib.distributions.python.ops import seed_stream
from tensorflow_probability.python import distributions as theirs
assert tfd.WishartFull is wishart.WishartFull and issubclass(tfd.WishartFull, theirs.Wishart)
assert issubclass(tfd.WishartCholesky, theirs.Wishart) and tfd.WishartCholesky != tfd.WishartFull
assert issubclass(tfd.Chi2WithAbsDf, theirs.Chi2)
assert tfd.ConditionalDistribution is theirs.Distribution
assert (
    conditional_transformed_distribution.ConditionalTransformedDistribution
    is transformed_distribution.TransformedDistribution
)
assert seed_stream.SeedStream is theirs.SeedStream
assert tfd.percentile == sample_stats.percentile == "percentile"
assert not hasattr(tfd, "histogram") and "percentile" in dir(tfd)
assert distribution_util.make_tril_scale == "scale"
assert moving_stats.moving_mean_variance == "moving"
assert bijector.Bijector and transformed_distribution.TransformedDistribution
# One function for both kinds of distributions: a program has them of tf.distributions too.
assert tfd.kl_divergence is tf.distributions.kl_divergence
""")  # fmt: skip


def test_keras_is_the_library_of_the_right_version(installed) -> None:
    files = {**FILES, **metadata_of_keras("2.2.5")}
    installed(files, """
import tensorflow as tf, keras
from tensorflow.keras.layers import Dense
from tensorflow.python.keras.layers import Dense as internal
from tensorflow.contrib.keras.layers import Dense as before
assert tf.keras.layers.Dense is Dense is internal is keras.layers.Dense
assert before is tf.contrib.keras.layers.Dense is Dense
""")  # fmt: skip
    installed(files, """
assert opdock.keras.layers.Dense.__module__ == "keras.layers"
import tensorflow
assert tensorflow.constant is opdock.constant
""", start="")  # fmt: skip


def test_tf_keras_is_preferred(installed) -> None:
    version = "Metadata-Version: 2.1\nName: tf_keras\nVersion: 2.15.0\n"
    files = {
        **FILES,
        **metadata_of_keras("2.2.5"),
        "tf_keras-0.1.dist-info/METADATA": version,
        "tf_keras/__init__.py": "",
        "tf_keras/api/__init__.py": "",
        "tf_keras/api/_v1/__init__.py": "",
        "tf_keras/api/_v1/keras/__init__.py": "",
        "tf_keras/api/_v1/keras/layers/__init__.py": "class Dense: pass",
        "tf_keras/src/__init__.py": "",
        "tf_keras/src/layers/__init__.py": "",
        "tf_keras/src/layers/core/__init__.py": "class Inner: pass",
    }
    installed(files, """
import tensorflow as tf, keras
from tensorflow.python.keras.layers.core import Inner
assert tf.keras.layers.Dense.__module__ == "tf_keras.api._v1.keras.layers"
assert tf.compat.v1.keras.layers.Dense is tf.keras.layers.Dense is not keras.layers.Dense
assert Inner.__module__ == "tf_keras.src.layers.core"
""")  # fmt: skip


@pytest.mark.parametrize("version", [None, "2.3.1", "3.4.0"])
def test_what_is_not_installed_is_told(installed, version: str | None) -> None:
    files = {} if version is None else {**FILES, **metadata_of_keras(version)}
    printed = installed(files, """
import tensorflow as tf
try:
    tf.keras.layers.Dense
except AttributeError as error:
    print(error)
try:
    from tensorflow.contrib.slim.nets import vgg
    vgg.vgg_16
except (AttributeError, ImportError) as error:
    print(error)
""")  # fmt: skip
    assert (
        "library tf_keras 2.15.0, which is not installed (pip install 'opdock[keras]')" in printed
    )
    assert ("tf_slim 1.*, which is not installed" in printed) == (version is None)
