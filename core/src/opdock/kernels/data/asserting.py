"""`AssertNextDataset`: what TF's tests of rewrites ask with."""

from __future__ import annotations

from collections.abc import Sequence

from opdock.kernels.data.base import Dataset, DatasetIterator, HandedOn, invalid
from opdock.kernels.data.context import Context

__all__ = ["AssertNextDataset"]


class AssertNextDataset(HandedOn):
    """The same elements, if the datasets that follow are of the kinds that were expected.

    Args:
        source: the elements.
        kinds: what the next ones are to be called, the nearest first.
    """

    def __init__(self, source: Dataset, kinds: Sequence[str]) -> None:
        super().__init__(source)
        self._kinds = tuple(kinds)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element.

        Raises:
            InvalidArgumentError: something else follows.
        """
        following = () if context.last is None else self._following(context.last, ()) or ()
        if len(self._kinds) > len(following):
            raise invalid(
                f"Asserted next {len(self._kinds)} transformations but encountered only "
                f"{len(following)}."
            )
        for i, (wanted, found) in enumerate(zip(self._kinds, following, strict=False)):
            if wanted != found:
                raise invalid(
                    f"Asserted {wanted} transformation at offset {i} but encountered {found} "
                    "transformation instead."
                )
        return super().iterator(context)

    def _following(self, dataset: Dataset, after: tuple[str, ...]) -> tuple[str, ...] | None:
        """The kinds of what stands between this one and the last; None where it is elsewhere."""
        if dataset is self:
            return after
        several = len(dataset.sources) > 1
        for i, source in enumerate(dataset.sources):
            kind = f"{dataset.kind}[{i}]" if several else dataset.kind
            found = self._following(source, (kind, *after) if kind else after)
            if found is not None:
                return found
        return None
