"""A training as it goes: a page that reads the run folder, on this machine only."""

from paretocosmos.explorer.live._server import Watch
from paretocosmos.explorer.live._state import state_of

__all__ = ["Watch", "state_of"]
