"""A plugin as a process of its own, under any user and from any executable: policy_peer.py KIND
SOCKET NAME [KUBELET-SOCK]

KIND is `driver` (a DRA driver behind a socket of plugins_registry), `plugin` (a device plugin there)
or `classic` (one that calls Register). Prints `there` when it serves, and what it was told."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("", "node"):
    sys.path.insert(0, os.path.join(HERE, os.pardir, "e2e", folder))

import grpc  # noqa: E402

from plugin import Plugin, start_server  # noqa: E402
from registrar import Registrar  # noqa: E402


class Teller(Registrar):
    """Says what it is told."""

    def _notify(self, request, context):
        print(f"told {request.plugin_registered} {request.error}", flush=True)
        return super()._notify(request, context)


def main(kind, socket, name):
    print(f"pid {os.getpid()}", flush=True)
    plugin = Plugin(os.path.dirname(socket), name if "/" in name else f"x/{name}", ["d1", "d2"],
                    name=os.path.basename(socket))
    if kind == "classic":
        kept = start_server(socket, plugin.handler)
        print("there", flush=True)
        try:
            plugin.register(timeout=60)
            print("registered", flush=True)
        except grpc.RpcError as refused:
            print(f"refused {refused.details()}", flush=True)
    else:
        is_driver = kind == "driver"
        kept = Teller(socket, name, kind="DRAPlugin" if is_driver else "DevicePlugin",
                      versions=("v1.DRAPlugin",) if is_driver else ("v1beta1",))
        kept.serve(plugin.handler)
        print("there", flush=True)
    sys.stdin.read()
    return kept


if __name__ == "__main__":
    main(*sys.argv[1:])
