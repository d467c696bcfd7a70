"""A port of the bundle: imported, called as a user would call it, with a record of what it launched."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from porter.case.reader import LaunchShape
from tools.gpu.manifest import Bundle, InstanceFacts, KernelFacts, Launch


class Port:
    """The module of a port. `launched` are the constexprs and the launch of the last call, None when it made none."""

    def __init__(self, bundle: Bundle, kernel: KernelFacts):
        path = bundle.folder / kernel.port
        spec = importlib.util.spec_from_file_location(f"porter_gpu_{kernel.name}", path)
        assert spec is not None and spec.loader is not None
        self.module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.facts = kernel
        self.kernel = self.module.KERNEL
        self.function = getattr(self.module, kernel.function)
        self.launched: tuple[dict[str, Any], LaunchShape] | None = None
        self._launch = self.kernel.launch
        self.kernel.launch = self._recorded

    def _recorded(self, constexprs: Mapping[str, Any], args: Any, *, grid: Any, block: Any, **rest: Any) -> None:
        self.launched = (dict(constexprs), LaunchShape(grid, block, rest.get("smem_bytes", 0)))
        self._launch(constexprs, args, grid=grid, block=block, **rest)

    def constexprs(self, instance: InstanceFacts) -> dict[str, Any]:
        return {n: instance.values[n] for n in self.kernel.constexprs}

    def arguments(self, launch: Launch, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the port's function; buffers not in `tensors` are None."""
        found: dict[str, Any] = {}
        for name, meaning in self.facts.arguments.items():
            if meaning in launch.shapes:
                found[name] = tensors.get(meaning)
            else:
                found[name] = launch.scalars[meaning] if meaning in launch.scalars else launch.sizes[meaning]
        return found

    def call(self, launch: Launch, tensors: Mapping[str, Any]) -> None:
        """Call the port's function."""
        self.launched = None
        self.function(**self.arguments(launch, tensors))

    def run_instance(self, instance: InstanceFacts, launch: Launch, tensors: Mapping[str, Any]) -> None:
        """Launch one instance whatever the port's function would choose, with the port's own launch arithmetic."""
        names = {**launch.sizes, **launch.scalars, **instance.values}
        grid, block, smem = self.module.launch_config(**names)
        args = [tensors.get(p.name) if p.dtype == "ptr" else launch.scalars[p.name] for p in instance.parameters]
        self.launched = None
        self.kernel.launch(self.constexprs(instance), args, grid=grid, block=block, smem_bytes=smem)
