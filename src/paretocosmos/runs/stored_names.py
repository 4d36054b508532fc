"""Names in files that version 0.2 wrote, and what they are called now."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

# What a record names, by its role: the name now, by that of 0.2.
NAMES = {"conditioning": {"tilt": "fairness_adjustment"}}
# Settings of the training: the name now, by that of 0.2.
SETTINGS = {"groups": "rays_per_batch"}
# Settings that are gone, by a problem's family; data that they changed differs in its checksum.
REMOVED_SETTINGS = {
    "celeba": ("partition", "skip"),
    "adult": ("data",),
    "compas": ("data",),
    "default": ("data",),
}
# Settings of what a record names that 0.2 did not have, and the values that do what it did.
ADDED_SETTINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "conditioning": {"fairness_adjustment": {"group_features": [], "base_score": []}},
    "problem": {"table": {"group": "estimate"}},
}
# Tensors of a network: the name now, by that of 0.2.
TENSORS = {"path": "adjustment.multiplier_path"}


def rename_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the names of today; its hash is that of the record as it was written."""
    renamed = _rename_training(_rename_specs(record, NAMES), SETTINGS)
    for role, spec, added in _list_added(renamed):
        renamed[role] = {**spec, "settings": {**added, **spec["settings"]}}
    return renamed


def restore_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the names of 0.2, for hashes that must stay what they were."""
    restored = dict(record)
    for role, spec, added in _list_added(record):
        settings = {k: v for k, v in spec["settings"].items() if k not in added or v != added[k]}
        restored[role] = {**spec, "settings": settings}
    old = {role: {new: old for old, new in names.items()} for role, names in NAMES.items()}
    return _rename_training(_rename_specs(restored, old), {v: k for k, v in SETTINGS.items()})


def _list_added(record: Mapping[str, Any]) -> list[tuple[str, Any, Mapping[str, Any]]]:
    """Return the specs of a record that have settings 0.2 did not have: role, spec, settings."""
    specs = ((role, record.get(role)) for role in ADDED_SETTINGS)
    return [
        (role, spec, ADDED_SETTINGS[role][str(spec.get("name"))])
        for role, spec in specs
        # what is no spec is refused elsewhere
        if isinstance(spec, dict) and isinstance(spec.get("settings"), dict)
        if str(spec.get("name")) in ADDED_SETTINGS[role]
    ]


def _rename_training(record: Mapping[str, Any], renames: Mapping[str, str]) -> dict[str, Any]:
    training = record.get("training")
    if not isinstance(training, dict):
        return dict(record)
    return {**record, "training": {renames.get(key, key): v for key, v in training.items()}}


def drop_removed_settings(problem: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a problem that it still has."""
    removed = REMOVED_SETTINGS.get(problem.partition("_")[0], ())
    return {key: value for key, value in settings.items() if key not in removed}


def _rename_specs(
    record: Mapping[str, Any], renames: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    # what is no spec stays as it is: a damaged record is refused elsewhere
    specs = {role: spec for role in renames if isinstance(spec := record.get(role), dict)}
    names = {role: str(spec.get("name")) for role, spec in specs.items()}
    return dict(record) | {
        role: specs[role] | {"name": renames[role][name]}
        for role, name in names.items()
        if name in renames[role]
    }


def rename_tensors(tensors: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Return stored tensors under the names they have in a network."""
    names = network.state_dict().keys()
    renames = {old: new for old, new in TENSORS.items() if new in names and old not in names}
    renamed = {renames.get(name, name): value for name, value in tensors.items()}
    for name in renames.values():
        # multipliers that are all 0 were not always written
        if name not in renamed:
            renamed[name] = torch.zeros_like(network.state_dict()[name])
    return renamed
