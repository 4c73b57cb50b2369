"""Plugins as supervised processes: launched, watched, restarted, ended."""

from agent_hooks.supervisor.manifest import Manifest, ManifestError, load_manifest, load_manifests
from agent_hooks.supervisor.settings import Settings
from agent_hooks.supervisor.supervisor import Binding, PluginStartError, Supervisor

__all__ = [
    "Binding",
    "Manifest",
    "ManifestError",
    "PluginStartError",
    "Settings",
    "Supervisor",
    "load_manifest",
    "load_manifests",
]
