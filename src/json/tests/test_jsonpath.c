#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "json/json.h"
#include "json/jsonpath.h"

#define TEXT_BYTES_MAX 65536u

static const char document[] =
    "{\"kind\":\"List\",\"items\":["
    "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x.y/z\":\"1\"}},\"n\":3,\"ok\":true},"
    "{\"metadata\":{\"name\":\"b\"},\"n\":10,\"ports\":[80,443]},"
    "{\"metadata\":{\"name\":\"c d\"},\"n\":2.5,\"deep\":{\"name\":\"e\"}}]}";

static bool print(const char *template, struct dv_arena *arena, struct dv_buf *buf,
                  struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(dv_str_from_c(document), NULL, arena, err);

    assert_non_null(doc);
    dv_buf_clear(buf);
    return dv_jsonpath_print(dv_str_from_c(template), doc, arena, buf, err);
}

static void templates_print_what_kubectl_prints(void **state)
{
    static const struct {
        const char *template;
        const char *want;
    } cases[] = {
        {"{.kind}",                                                      "List"                   },
        {".kind",                                                        "List"                   },
        {"kind is {.kind}.",                                             "kind is List."          },
        {"{.items[*].metadata.name}",                                    "a b c d"                },
        {"{$.items[0].metadata.name}",                                   "a"                      },
        {"{.items[-1].metadata.name}",                                   "c d"                    },
        {"{.items[0:2].metadata.name}",                                  "a b"                    },
        {"{.items[::2].n}",                                              "3 2.5"                  },
        {"{.items[7].n}{.items[-7].n}{.nothing.at.all}",                 ""                       },
        {"{.items[0].metadata.labels.x\\.y/z}",                          "1"                      },
        {"{.items[0].metadata.labels['x.y/z']}",                         "1"                      },
        {"{range .items[*]}{.metadata.name}{\"\\t\"}{.n}{\"\\n\"}{end}", "a\t3\nb\t10\nc d\t2.5\n"},
        {"{range .items[*]}{range .ports[*]}{@},{end}{end}",             "80,443,"                },
        {"{range .none[*]}{.x}{end}|",                                   "|"                      },
        {"{.items[?(@.metadata.name==\"b\")].n}",                        "10"                     },
        {"{.items[?(@.n>2.9)].metadata.name}",                           "a b"                    },
        {"{.items[?(@.n<=3)].n}",                                        "3 2.5"                  },
        {"{.items[?(@.ports)].metadata.name}",                           "b"                      },
        {"{.items[?(@.metadata.name!='a')].n}",                          "10 2.5"                 },
        {"{.items[1].ports}",                                            "[80,443]"               },
        {"{.items[0].ok} {.items[0].metadata.labels}",                   "true {\"x.y/z\":\"1\"}" },
        {"{.items[2]..name}",                                            "c d e"                  },
        {"{.items[1].ports.*}",                                          "80 443"                 },
        {"{.items[0].metadata.name .items[1].n}",                        "a10"                    },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_ok(print(cases[i].template, arena, &buf, &err), &err);
        if (strcmp(dv_buf_c(&buf), cases[i].want) != 0)
            fail_msg("%s: \"%s\", wanted \"%s\"", cases[i].template, dv_buf_c(&buf), cases[i].want);
    }
    dv_buf_fini(&buf);
}

static void mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *template;
        const char *want;
    } cases[] = {
        {"{.kind",                "character 7: a brace has no end"    },
        {"{kind}",                "character 2: neither a path"        },
        {"{.items[x]}",           "character 9: not an index"          },
        {"{.items[0}",            "character 9: a bracket has no end"  },
        {"{range .items[*]}{.n}", "character 22: a range has no {end}" },
        {"{end}",                 "character 6: an end without a range"},
        {"{.items[?(@.n==3]}",    "neither a path (@.key)"             },
        {"{.items[?(@.n==x)]}",   "neither a path (@.key), a number"   },
        {"{.items['a]}",          "the quoted text has no end"         },
        {"{.items[0:1:0]}",       "a step is above zero"               },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_buf buf;
    struct dv_err err;

    (void)state;
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_false(print(cases[i].template, arena, &buf, &err));
        if (!strstr(err.msg, cases[i].want))
            fail_msg("%s: \"%s\", wanted \"%s\"", cases[i].template, err.msg, cases[i].want);
    }
    dv_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_print_what_kubectl_prints),
        cmocka_unit_test(mistakes_are_told_with_their_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
