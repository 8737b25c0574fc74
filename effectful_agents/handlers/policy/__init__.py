"""Authority: who may do what, who is asked, and what a stack says of itself."""

from effectful_agents.handlers.policy.manifest import CompositionManifest, composition_manifest

__all__ = ["CompositionManifest", "composition_manifest"]
