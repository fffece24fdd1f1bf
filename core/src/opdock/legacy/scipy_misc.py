"""The functions of `scipy.misc` that SciPy has dropped; images are read and scaled by Pillow."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock.errors import InvalidArgumentError

_FILTERS: Final = {
    "nearest": "NEAREST", "lanczos": "LANCZOS", "bilinear": "BILINEAR", "bicubic": "BICUBIC",
    "cubic": "BICUBIC",
}  # fmt: skip


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray[Any, Any]:
    """Reads an image as an array; `flatten` gives floats of one channel.

    Raises:
        FileNotFoundError, PIL.UnidentifiedImageError: there is no image.
    """
    from PIL import Image

    with Image.open(name) as image:
        return fromimage(image, flatten, mode)


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> np.ndarray[Any, Any]:
    """A Pillow image as an array."""
    if mode is not None and mode != im.mode:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im.convert("F") if flatten else im)


def bytescale(
    data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0
) -> np.ndarray[Any, Any]:
    """Scales values between `cmin` and `cmax` (the data's own ends) to bytes; bytes stay bytes.

    Raises:
        ValueError: the bounds are no ascending bytes.
    """
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return np.asarray(data, np.uint8)
    if not 0 <= low <= high <= 255:
        raise ValueError(f"bytescale wants 0 <= low <= high <= 255, got low={low}, high={high}")
    cmin = data.min() if cmin is None else cmin
    cmax = data.max() if cmax is None else cmax
    if cmax < cmin:
        raise ValueError(f"`cmax` should be larger than `cmin`, got {cmax} and {cmin}")
    scale = float(high - low) / (float(cmax - cmin) or 1.0)
    found = ((data - cmin) * scale + low).clip(low, high) + 0.5
    return np.asarray(found, np.float64).astype(np.uint8)


def toimage(
    arr: Any,
    high: int = 255,
    low: int = 0,
    cmin: Any = None,
    cmax: Any = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """An array as a Pillow image: two dimensions are gray, three have 3 or 4 channels.

    Raises:
        ValueError: the shape is no image's.
    """
    from PIL import Image

    data = np.asarray(arr)
    if np.iscomplexobj(data):
        raise ValueError("Cannot convert a complex-valued array.")
    if data.ndim == 2:
        if mode == "F":
            return Image.fromarray(data.astype(np.float32))
        if mode == "I":
            return Image.fromarray(data.astype(np.int32))
        image = Image.fromarray(bytescale(data, cmin, cmax, high, low))
        if pal is not None:
            image.putpalette(np.asarray(pal, np.uint8).tobytes())
        return image if mode in (None, "L", "P") else image.convert(mode)
    if data.ndim != 3 or not {3, 4} & set(data.shape):
        raise ValueError(
            f"'arr' does not have a suitable array shape for any mode: {tuple(data.shape)}"
        )
    axis = channel_axis
    if axis is None:
        axis = data.shape.index(3 if 3 in data.shape else 4)
    scaled = np.ascontiguousarray(np.moveaxis(bytescale(data, cmin, cmax, high, low), axis, 2))
    image = Image.fromarray(scaled)
    return image if mode in (None, image.mode) else image.convert(mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Writes an array as an image; the file's name says the format."""
    toimage(arr, channel_axis=2 if np.ndim(arr) == 3 else None).save(name, format)


def imresize(
    arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None
) -> np.ndarray[Any, Any]:
    """Scales an image: by a percentage (int), a factor (float) or to (height, width).

    Raises:
        InvalidArgumentError: there is no such interpolation.
    """
    from PIL import Image

    if interp not in _FILTERS:
        raise InvalidArgumentError(
            None, None, f"imresize: interp is {interp!r}, not one of {', '.join(_FILTERS)}"
        )
    image = toimage(arr, mode=mode)
    if isinstance(size, int | np.integer):
        wanted = (int(image.width * size / 100.0), int(image.height * size / 100.0))
    elif isinstance(size, float | np.floating):
        wanted = (int(image.width * size), int(image.height * size))
    else:
        wanted = (int(size[1]), int(size[0]))
    return fromimage(image.resize(wanted, resample=Image.Resampling[_FILTERS[interp]]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> np.ndarray[Any, Any]:
    """Turns an image counter-clockwise by degrees."""
    from PIL import Image

    # Pillow turns with these three only; the closest stands for the others.
    name = "BICUBIC" if _FILTERS.get(interp) == "LANCZOS" else _FILTERS.get(interp, "BILINEAR")
    return fromimage(toimage(arr).rotate(angle, resample=Image.Resampling[name]))


def imshow(arr: Any) -> None:
    """Shows an array with the program that shows images."""
    toimage(arr).show()


def imfilter(arr: Any, ftype: str) -> np.ndarray[Any, Any]:
    """Applies one of Pillow's filters by name, "blur" or "find_edges".

    Raises:
        ValueError: there is no such filter.
    """
    from PIL import ImageFilter

    found = getattr(ImageFilter, ftype.upper(), None)
    if found is None:
        raise ValueError(f"Unknown filter type: {ftype!r}.")
    return fromimage(toimage(arr).filter(found))


def __getattr__(name: str) -> Any:
    """What moved to `scipy.special` and `scipy.datasets`."""
    import scipy.datasets
    import scipy.special

    for place in (scipy.special, scipy.datasets):
        if name in ("comb", "factorial", "factorial2", "factorialk", "logsumexp") or (
            place is scipy.datasets and name in ("face", "ascent", "electrocardiogram")
        ):
            return getattr(place, name)
    raise AttributeError(f"module 'scipy.misc' has no attribute {name!r}", name=name)
