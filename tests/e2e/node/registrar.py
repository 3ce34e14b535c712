"""The registrar of a plugin in plugins_registry/, on grpcio, with whatever manners a test wants."""

import os
import threading

import grpc

import protos
from plugin import start_server, unary


class Registrar:
    """Serves pluginregistration.Registration on a socket that davitd's watcher finds."""

    def __init__(self, socket, name, endpoint="", kind="DevicePlugin", versions=("v1beta1",)):
        self.pb = protos.load("registration_v1")
        self.socket = socket
        self.name = name
        self.endpoint = endpoint
        self.kind = kind
        self.versions = versions
        self.n_infos = 0  # GetInfo calls
        self.told = []  # (registered, error) of each NotifyRegistrationStatus
        self.info_error = None  # text: GetInfo fails with it
        self.notify_error = None
        self.hang = None  # an Event: GetInfo waits for it
        self._server = None

    def _info(self, request, context):
        self.n_infos += 1
        if self.hang:
            self.hang.wait(30)
        if self.info_error:
            context.abort(grpc.StatusCode.INTERNAL, self.info_error)
        return self.pb.PluginInfo(
            type=self.kind,
            name=self.name,
            endpoint=self.endpoint,
            supported_versions=self.versions,
        )

    def _notify(self, request, context):
        self.told.append((request.plugin_registered, request.error))
        if self.notify_error:
            context.abort(grpc.StatusCode.INTERNAL, self.notify_error)
        return self.pb.RegistrationStatusResponse()

    @property
    def is_registered(self):
        return bool(self.told) and self.told[-1] == (True, "")

    def serve(self, *more):
        """`more`: handlers of other services on the same socket."""
        os.makedirs(os.path.dirname(self.socket), exist_ok=True)
        handlers = {
            "GetInfo": unary(self._info, self.pb.InfoRequest),
            "NotifyRegistrationStatus": unary(self._notify, self.pb.RegistrationStatus),
        }
        self._server = start_server(
            self.socket,
            grpc.method_handlers_generic_handler("pluginregistration.Registration", handlers),
            *more,
        )
        return self

    def hang_until_stopped(self):
        self.hang = threading.Event()
        return self

    def stop(self, remove=True):
        if self.hang:
            self.hang.set()
        if self._server:
            self._server.stop(0).wait()
            self._server = None
        if remove and os.path.lexists(self.socket):
            os.unlink(self.socket)
