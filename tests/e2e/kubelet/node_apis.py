"""A node of another davitd's API that serves an API of its own, and clients of that."""

import http.client
import json
import os
import re
import ssl

from bound_pods import SecondNode
from nodes import run_davit
from servers import PATIENCE_S, Api, Answer


class KubeletNode(SecondNode):
    """n2: it asks the API of n1 who its clients are."""

    def start(self, *more, ready=True):
        pki = os.path.join(self.first.state_dir, "pki", "ca.crt")
        return super().start("--node-listen", "127.0.0.1:0", "--node-healthz", "127.0.0.1:0",
                             "--client-ca", pki, *more, ready=ready)

    def _port(self, name):
        found = re.search(rf"the node's own API serves.*\b{name}=(\d+)", self.proc.log)
        return int(found.group(1))

    @property
    def port(self):
        return self._port("port")

    @property
    def health_port(self):
        return self._port("health_port")

    def context(self, *certificate):
        context = ssl.create_default_context(
            cafile=os.path.join(self.state_dir, "pki", "ca.crt"))
        if certificate:
            context.load_cert_chain(*certificate)
        return context

    def client(self, token=None, certificate=()):
        return Api(self.port, self.context(*certificate), token)

    def ask_health(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=PATIENCE_S)
        connection.request("GET", path)
        answer = connection.getresponse()
        made = Answer(answer.status, answer.headers, answer.read())
        connection.close()
        return made


def make_token(node, *words):
    """The secret and the id of a new token of n1's API."""
    done = run_davit("token", "create", *words, "-o", "json", "--kubeconfig", node.kubeconfig)
    assert done.returncode == 0, done
    made = json.loads(done.stdout)
    return made["token"], made["id"]
