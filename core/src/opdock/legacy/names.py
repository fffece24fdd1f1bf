"""The names that are put back, as data: module, name, and where its replacement is."""

from __future__ import annotations

from typing import Final

_OWN = "opdock.legacy.functions"

# Module -> name -> "module:name" of what stands for it. Without a colon: a module.
NAMES: Final[dict[str, dict[str, str]]] = {
    "numpy": {
        "bool": "builtins:bool",
        "int": "builtins:int",
        "float": "builtins:float",
        "complex": "builtins:complex",
        "object": "builtins:object",
        "str": "builtins:str",
        "unicode": "builtins:str",
        "long": "builtins:int",
        "bool8": "numpy:bool_",
        "int0": "numpy:intp",
        "uint0": "numpy:uintp",
        "object0": "numpy:object_",
        "str0": "numpy:str_",
        "bytes0": "numpy:bytes_",
        "void0": "numpy:void",
        "float_": "numpy:float64",
        "complex_": "numpy:complex128",
        "cfloat": "numpy:complex128",
        "singlecomplex": "numpy:complex64",
        "longfloat": "numpy:longdouble",
        "longcomplex": "numpy:clongdouble",
        "clongfloat": "numpy:clongdouble",
        "string_": "numpy:bytes_",
        "unicode_": "numpy:str_",
        "Inf": "numpy:inf",
        "Infinity": "numpy:inf",
        "infty": "numpy:inf",
        "PINF": "numpy:inf",
        "NINF": f"{_OWN}:negative_infinity",
        "NaN": "numpy:nan",
        "NAN": "numpy:nan",
        "PZERO": f"{_OWN}:zero",
        "NZERO": f"{_OWN}:negative_zero",
        "alltrue": "numpy:all",
        "sometrue": "numpy:any",
        "product": "numpy:prod",
        "cumproduct": "numpy:cumprod",
        "round_": "numpy:round",
        "row_stack": "numpy:vstack",
        "in1d": f"{_OWN}:in1d",
        "trapz": "numpy:trapezoid",
        "rank": "numpy:ndim",
        "mat": "numpy:asmatrix",
        "asscalar": f"{_OWN}:asscalar",
        "asfarray": f"{_OWN}:asfarray",
        "msort": f"{_OWN}:msort",
        "find_common_type": f"{_OWN}:find_common_type",
        "obj2sctype": f"{_OWN}:obj2sctype",
        "issctype": f"{_OWN}:issctype",
        "issubclass_": f"{_OWN}:issubclass_",
        "issubsctype": f"{_OWN}:issubsctype",
        "sctype2char": f"{_OWN}:sctype2char",
        "sctypes": f"{_OWN}:sctypes",
        "cast": f"{_OWN}:cast",
        "set_string_function": f"{_OWN}:set_string_function",
        "disp": f"{_OWN}:disp",
        "safe_eval": "ast:literal_eval",
        "fastCopyAndTranspose": f"{_OWN}:fast_copy_and_transpose",
        "core": "numpy._core",
        "AxisError": "numpy.exceptions:AxisError",
        "ComplexWarning": "numpy.exceptions:ComplexWarning",
        "RankWarning": "numpy.exceptions:RankWarning",
        "TooHardError": "numpy.exceptions:TooHardError",
        "VisibleDeprecationWarning": "numpy.exceptions:VisibleDeprecationWarning",
        "DTypePromotionError": "numpy.exceptions:DTypePromotionError",
        "ModuleDeprecationWarning": "builtins:DeprecationWarning",
    },
    "numpy.random": {"random_integers": f"{_OWN}:random_integers"},
    "collections": {
        name: f"collections.abc:{name}"
        for name in (
            "AsyncIterable",
            "AsyncIterator",
            "Awaitable",
            "ByteString",
            "Callable",
            "Collection",
            "Container",
            "Coroutine",
            "Generator",
            "Hashable",
            "ItemsView",
            "Iterable",
            "Iterator",
            "KeysView",
            "Mapping",
            "MappingView",
            "MutableMapping",
            "MutableSequence",
            "MutableSet",
            "Reversible",
            "Sequence",
            "Set",
            "Sized",
            "ValuesView",
        )
    },
    "inspect": {
        "getargspec": f"{_OWN}:getargspec",
        "ArgSpec": f"{_OWN}:ArgSpec",
        "formatargspec": f"{_OWN}:formatargspec",
        "getmoduleinfo": f"{_OWN}:getmoduleinfo",
    },
    "time": {"clock": f"{_OWN}:clock"},
    "fractions": {"gcd": "math:gcd"},
    "os": {"errno": "errno", "getcwdu": "os:getcwd"},
    "sys": {"maxint": "sys:maxsize", "setcheckinterval": f"{_OWN}:nothing"},
    # TensorFlow imported them, so programs that import `urllib` alone found them there.
    "urllib": {name: f"urllib.{name}" for name in ("error", "parse", "request", "response")},
    "base64": {"encodestring": "base64:encodebytes", "decodestring": "base64:decodebytes"},
    "cgi": {"escape": "html:escape"},
    "locale": {"format": "locale:format_string"},
    "platform": {
        "linux_distribution": f"{_OWN}:linux_distribution",
        "dist": f"{_OWN}:linux_distribution",
    },
    "asyncio": {"coroutine": "types:coroutine", "async": "asyncio:ensure_future"},
    "configparser": {"SafeConfigParser": "configparser:ConfigParser"},
    "types": {"StringType": "builtins:str", "ListType": "builtins:list", "IntType": "builtins:int"},
    "logging": {"warn": "logging:warning"},
    "scipy": {},  # and every name of NumPy's: see restore.py
    "scipy.integrate": {
        "trapz": "scipy.integrate:trapezoid",
        "cumtrapz": "scipy.integrate:cumulative_trapezoid",
        "simps": "scipy.integrate:simpson",
    },
    "scipy.linalg": {
        "pinv2": "scipy.linalg:pinv",
        "tril": "numpy:tril",
        "triu": "numpy:triu",
        "kron": "numpy:kron",
    },
    "scipy.ndimage": {"imread": "opdock.legacy.scipy_misc:imread"},
    "scipy.signal": {
        "hanning": "scipy.signal.windows:hann",
        **{
            name: f"scipy.signal.windows:{name}"
            for name in (
                "barthann",
                "bartlett",
                "blackman",
                "blackmanharris",
                "bohman",
                "boxcar",
                "chebwin",
                "cosine",
                "exponential",
                "flattop",
                "gaussian",
                "general_gaussian",
                "hamming",
                "hann",
                "kaiser",
                "nuttall",
                "parzen",
                "triang",
                "tukey",
            )
        },
    },
    "scipy.special": {"errprint": f"{_OWN}:nothing"},
    "PIL.Image": {
        "ANTIALIAS": "PIL.Image:Resampling.LANCZOS",
        "LINEAR": "PIL.Image:Resampling.BILINEAR",
        "CUBIC": "PIL.Image:Resampling.BICUBIC",
        "NEAREST": "PIL.Image:Resampling.NEAREST",
        "BILINEAR": "PIL.Image:Resampling.BILINEAR",
        "BICUBIC": "PIL.Image:Resampling.BICUBIC",
        "LANCZOS": "PIL.Image:Resampling.LANCZOS",
        "AFFINE": "PIL.Image:Transform.AFFINE",
        "EXTENT": "PIL.Image:Transform.EXTENT",
        "PERSPECTIVE": "PIL.Image:Transform.PERSPECTIVE",
        "QUAD": "PIL.Image:Transform.QUAD",
        "FLIP_LEFT_RIGHT": "PIL.Image:Transpose.FLIP_LEFT_RIGHT",
        "FLIP_TOP_BOTTOM": "PIL.Image:Transpose.FLIP_TOP_BOTTOM",
        "ROTATE_90": "PIL.Image:Transpose.ROTATE_90",
        "ROTATE_180": "PIL.Image:Transpose.ROTATE_180",
        "ROTATE_270": "PIL.Image:Transpose.ROTATE_270",
    },
    "librosa.feature": {"rmse": "librosa.feature:rms"},
    "matplotlib.cm": {"get_cmap": "matplotlib.pyplot:get_cmap"},
    "sklearn.externals": {"joblib": "joblib", "six": "six"},
}
NAMES["scipy.misc"] = {
    name: f"opdock.legacy.scipy_misc:{name}"
    for name in (
        "bytescale",
        "comb",
        "factorial",
        "factorial2",
        "factorialk",
        "fromimage",
        "imfilter",
        "imread",
        "imresize",
        "imrotate",
        "imsave",
        "imshow",
        "logsumexp",
        "toimage",
    )
}

# Modules that are gone -> the module that stands for them.
MODULES: Final[dict[str, str]] = {
    "imp": "opdock.legacy.imp",
    "scipy.misc": "opdock.legacy.scipy_misc",
    "scipy.misc.pilutil": "opdock.legacy.scipy_misc",
    "scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg._eigen.arpack",
    "scipy.sparse.linalg.eigen.arpack.arpack": "scipy.sparse.linalg._eigen.arpack",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.grid_search": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.externals.six": "six",
    "xml.etree.cElementTree": "xml.etree.ElementTree",
}

# Class -> method -> what stands for it: another method, or a function at "module:name".
# What tf_keras 2.15 asks of NumPy 1.
KERAS_NAMES: Final[dict[str, tuple[str, ...]]] = {"numpy": ("Inf", "unicode_")}
# What layers could do in TensorFlow 1.15, and the list of a layer's own layers.
KERAS_METHODS: Final[dict[str, dict[str, str]]] = {
    f"tf_keras.src.engine.{module}:Layer": {"apply": "__call__"}
    for module in ("base_layer", "base_layer_v1")
}
KERAS_ATTRIBUTES: Final[dict[str, dict[str, str]]] = {
    f"tf_keras.src.engine.{module}:Layer": {"_layers": "_self_tracked_trackables"}
    for module in ("base_layer", "base_layer_v1")
}

METHODS: Final[dict[str, dict[str, str]]] = {
    # Keras 2.2 stands for tf.keras where tf_keras is not installed.
    "keras.engine.base_layer:Layer": {"apply": "__call__"},
    "threading:Thread": {"isAlive": "is_alive"},
    "unittest:TestCase": {
        "assertItemsEqual": "assertCountEqual",
        "assertEquals": "assertEqual",
        "assertNotEquals": "assertNotEqual",
        "assertAlmostEquals": "assertAlmostEqual",
        "assertNotAlmostEquals": "assertNotAlmostEqual",
        "assertRegexpMatches": "assertRegex",
        "assertNotRegexpMatches": "assertNotRegex",
        "assertRaisesRegexp": "assertRaisesRegex",
        "assertDictContainsSubset": "opdock.legacy.functions:assert_dict_contains_subset",
        "assert_": "assertTrue",
        "failUnlessEqual": "assertEqual",
    },
    "configparser:RawConfigParser": {"readfp": "read_file"},
    "numpy:ndarray": {
        "tostring": "tobytes",
        "itemset": f"{_OWN}:itemset",
        "newbyteorder": f"{_OWN}:newbyteorder",
        "ptp": "numpy:ptp",
    },
    "numpy:generic": {"tostring": "tobytes"},
    "PIL.ImageFont:FreeTypeFont": {"getsize": "opdock.legacy.functions:text_size"},
    "PIL.ImageDraw:ImageDraw": {"textsize": "opdock.legacy.functions:drawn_text_size"},
}
