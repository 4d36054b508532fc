"""Several processes that train one run: the only subpackage that uses torch.distributed."""

from paretocosmos.runtime.distributed._processes import ALONE, Processes, join

__all__ = ["ALONE", "Processes", "join"]
