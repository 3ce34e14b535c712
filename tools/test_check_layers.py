#!/usr/bin/python3
"""What tools/check-layers allows and refuses, each shown by a made-up tree."""
import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SCRIPT = str(Path(__file__).with_name("check-layers"))
LOADER = importlib.machinery.SourceFileLoader("check_layers", SCRIPT)
SPEC = importlib.util.spec_from_loader("check_layers", LOADER)
check_layers = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(check_layers)


# Rows and folders as ARCHITECTURE.md draws them, so that the tests do not change with the tree.
PAGE = """
```
     effects: on the loop     |  pure: values in, values out
  5  claim   device   daemon  |
  4  plugin                   |  alloc
  3  grpc    store    rest    |
  2  loop                     |  http2  pb  json  cel
  0                         base
```

```
claim   [state] < manager
rest    shared < server < both
        shared < client
```
"""


def findings(files):
    """The findings for a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve()
        for name, text in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check_layers.Layers(tree, check_layers.Shape(PAGE)).check()


class CheckLayers(unittest.TestCase):
    def refuses(self, files, *starts):
        """Exactly these findings, each known by how it starts."""
        got = findings(files)
        self.assertEqual(len(got), len(starts), got)
        for line, start in zip(got, starts):
            self.assertTrue(line.startswith(start), f"{line!r} does not start with {start!r}")

    def allows(self, files):
        self.assertEqual(findings(files), [])

    def test_knows_the_diagram(self):
        page = Path(SCRIPT).parent.parent / "ARCHITECTURE.md"
        shape = check_layers.Shape(page.read_text(encoding="utf-8"))
        self.assertEqual(shape.places["base"], (0, True))
        self.assertEqual(shape.places["grpc"], (3, False))
        self.assertEqual(shape.places["pb"], (2, True))
        self.assertEqual(shape.folders["device"]["manager"], {"state"})
        self.assertIn(("device", "state"), shape.pure_folders)

    def test_allows_going_down(self):
        self.allows({
            "src/grpc/meson.build": "needs = ['base', # why\n  'loop', 'http2']\n",
            "src/grpc/call.c": '#include "grpc/grpc.h"\n#include "call.h"\n#include "base/vec.h"\n'
                               '#include "http2/http2.h"\n#include "loop/loop.h"\n'
                               '#include <string.h>\n',
            "src/grpc/tests/test_deep.c": '#include "grpc/call.h"\n',
        })

    def test_refuses_an_upward_include(self):
        self.refuses({
            "src/loop/meson.build": "needs = ['grpc']\n",
            "src/loop/a.c": '\n#include "grpc/grpc.h"\n',
        }, "src/loop/a.c:2: row: loop (row 2) includes grpc/grpc.h (row 3)")

    def test_refuses_a_sideways_include(self):
        self.refuses({
            "src/claim/meson.build": "needs = ['device']\n",
            "src/claim/a.h": '#include "device/device.h"\n',
        }, "src/claim/a.h:1: row: ")

    def test_refuses_effects_in_what_is_pure(self):
        self.refuses({
            "src/alloc/meson.build": "needs = ['store']\n",
            "src/alloc/a.c": '#include "store/store.h"\n',
        }, "src/alloc/a.c:1: pure: alloc is pure, store/store.h has effects")

    def test_refuses_a_private_header(self):
        self.refuses({
            "src/grpc/meson.build": "needs = ['loop']\n",
            "src/grpc/a.c": '#include "loop/uvloop.h"\n',
        }, "src/grpc/a.c:1: private header: loop/uvloop.h is loop's own")

    def test_refuses_an_include_that_needs_does_not_list(self):
        self.refuses({
            "src/grpc/meson.build": "needs = ['base']\n# needs = ['loop']\n",
            "src/grpc/a.c": '#include "base/str.h"\n#include <loop/loop.h>\n',
        }, "src/grpc/a.c:2: missing need: ")

    def test_refuses_a_need_that_is_not_included(self):
        self.refuses({
            "src/grpc/meson.build": "# grpc\nneeds = ['base', 'http2']\n",
            "src/grpc/a.c": '#include "base/str.h"\n',
        }, "src/grpc/meson.build:2: unused need: no file of grpc includes http2")

    def test_refuses_a_library_outside_its_owner(self):
        for header, owner in [("uv.h", "loop"), ("nghttp2/nghttp2.h", "http2"),
                              ("sqlite3.h", "store"), ("curl/curl.h", "rest"),
                              ("gnutls/x509.h", "rest"), ("jansson.h", "json"),
                              ("yaml.h", "json"),
                              ("protobuf-c/protobuf-c.h", "pb"), ("pcre2.h", "cel"),
                              ("systemd/sd-daemon.h", "daemon")]:
            with self.subTest(header):
                use = next(row[1] for row in check_layers.LIBRARIES if header.startswith(row[0]))
                self.refuses({
                    "src/plugin/meson.build": "",
                    "src/plugin/a.c": f"#include <{header}>\n",
                }, f"src/plugin/a.c:1: library: {header} belongs to {owner}")
                self.allows({
                    f"src/{owner}/meson.build": f"uses = ['threads', '{use}']\n",
                    f"src/{owner}/a.c": f"#include <{header}>\n",
                })

    def test_allows_libraries_in_tests_and_benchmarks(self):
        self.allows({
            "src/grpc/meson.build": "",
            "src/grpc/bench_rpc.c": "#include <uv.h>\n",
            "src/grpc/test_call.c": '#include <nghttp2/nghttp2.h>\n#include "support/dvtest.h"\n',
        })

    def test_refuses_libraries_that_uses_does_not_match(self):
        self.refuses({
            "src/loop/meson.build": "uses = ['threads', 'proto']\n",
            "src/loop/a.c": "#include <uv.h>\n",
        }, "src/loop/a.c:1: missing library: ",
            "src/loop/meson.build:1: unused library: no file of loop includes proto")

    def test_holds_tests_to_the_rows_too(self):
        self.refuses({
            "src/http2/meson.build": "needs = ['loop']\n",
            "src/http2/test_a.c": '#include "loop/loop.h"\n',
        }, "src/http2/test_a.c:1: row: ", "src/http2/test_a.c:1: pure: ")

    def test_holds_the_order_of_folders(self):
        self.allows({
            "src/rest/meson.build": "",
            "src/rest/rest.h": "",
            "src/rest/also.h": '#include "rest/rest.h"\n',
            "src/rest/main.c": '#include "rest/both/b.h"\n',
            "src/rest/shared/s.h": '#include "rest/also.h"\n',
            "src/rest/both/b.h": '#include "rest/shared/s.h"\n#include "rest/server/v.h"\n',
            "src/rest/tests/test_b.c": '#include "rest/both/b.h"\n',
        })
        self.refuses({
            "src/rest/meson.build": "",
            "src/rest/client/c.c": '#include "rest/shared/s.h"\n#include "rest/server/v.h"\n',
            "src/rest/rest.h": '#include "rest/shared/s.h"\n',
            "src/rest/shared/s.h": '#include "rest/tests/test_it.h"\n',
        }, "src/rest/client/c.c:2: folder: rest/client includes rest/server/v.h; before it come only: "
           "shared",
            "src/rest/rest.h:1: folder: a header for others includes rest/shared/s.h",
            "src/rest/shared/s.h:1: tests: rest/tests/test_it.h is for tests")

    def test_knows_what_is_pure_in_a_module(self):
        self.refuses({
            "src/claim/meson.build": "needs = ['loop']\n",
            "src/claim/manager/m.c": '#include "loop/loop.h"\n',
            "src/claim/state/s.c": '#include "loop/loop.h"\n',
        }, "src/claim/state/s.c:1: pure: claim/state is pure, loop/loop.h has effects")

    def test_knows_the_headers_of_a_module_with_folders(self):
        self.refuses({
            "src/plugin/meson.build": "needs = ['rest']\n",
            "src/plugin/a.c": '#include "rest/also.h"\n#include "rest/shared/s.h"\n',
        }, "src/plugin/a.c:2: private header: rest/shared/s.h is rest's own")

    def test_refuses_what_has_no_place_or_no_room(self):
        files = {f"src/rest/shared/f{i}.c": "" for i in range(41)}
        self.refuses({**files, "src/rest/meson.build": "", "src/rest/util/a.c": "",
                      "src/loop/meson.build": "", "src/loop/f0.c": "", "src/loop/test_f0.c": ""},
                     "src/rest/util:1: unknown folder: ", "src/rest/shared:1: crowd: 41 files",
                     "src/rest/shared/f0.c:1: name: src/loop/f0.c has the same name")

    def test_refuses_a_module_without_a_place(self):
        self.refuses({"src/utils/a.c": ""}, "src/utils:1: unknown module: utils")

    def test_refuses_our_headers_in_installed_ones(self):
        self.refuses({
            "include/davit/davit.h": '#include <stdint.h>\n#include "davit/types.h"\n'
                                     '#include "base/str.h"\n',
        }, "include/davit/davit.h:3: installed header: base/str.h is not installed")

    def test_leaves_drivers_and_tests_alone(self):
        self.allows({
            "drivers/sample/main.c": '#include "grpc/call.h"\n#include <uv.h>\n',
            "tests/golden/golden_x.c": '#include "cel/read/lex.h"\n',
        })


if __name__ == "__main__":
    unittest.main()
