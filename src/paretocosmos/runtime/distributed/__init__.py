"""Several processes that train one run: the only subpackage that uses torch.distributed."""

from paretocosmos.runtime.distributed.processes import ALONE, Processes, join_processes
