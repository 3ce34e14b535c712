"""The embedded API over TLS: tests/golden/api_server.c, with its tokens, and clients of it."""

import http.client
import json
import ssl

import pytest


class Api:
    """Requests to the server, each on a connection of its own."""

    def __init__(self, port, ca):
        self.port = port
        self.ca = ca
        self.context = ssl.create_default_context(cafile=ca)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=30)

    def open(self, method, path, body=None, token="admintoken", **fields):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        headers |= {name.replace("_", "-"): value for name, value in fields.items()}
        connection = self.connect()
        connection.request(method, path, body=body, headers=headers)
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, **options):
        """(status, document)"""
        connection, answer = self.open(method, path, body, **options)
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    def must(self, method, path, body=None, **options):
        status, doc = self.ask(method, path, body, **options)
        assert status in (200, 201), doc
        return doc


@pytest.fixture
def server(api_server):
    """It has to live to the end of the test."""
    yield api_server
    assert api_server.is_alive, api_server.describe()


@pytest.fixture
def api(server):
    return Api(server.port, server.ca)


@pytest.fixture
def requests_to():
    """For tests that start servers themselves: makes what asks the one on a port."""
    return Api
