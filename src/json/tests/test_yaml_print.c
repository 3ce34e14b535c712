#include "json/tests/test_doc.h"

static void prints(const char *json, const char *yaml)
{
    assert_str(print_yaml(parse(json), NULL), yaml);
}

/* Each line as kubectl 1.32 prints it. */
static void prints_documents_as_kubectl_does(void **state)
{
    (void)state;
    prints("{\"b\":{\"c\":1},\"a\":[1,{\"x\":2,\"y1\":[]},[3,[4]],{}]}",
           "b:\n  c: 1\na:\n- 1\n- x: 2\n  y1: []\n- - 3\n  - - 4\n- {}\n");
    prints("{\"a\":null,\"b\":true,\"c\":-5,\"d\":\"\",\"e\":18446744073709551615}",
           "a: null\nb: true\nc: -5\nd: \"\"\ne: 18446744073709551615\n");
    prints("{\"a\":\"two\\n lines\",\"b\":\" lead\\nline\\n\",\"c\":\"\\n\",\"d\":\"a\\n\\n\"}",
           "a: |-\n  two\n   lines\nb: |2\n   lead\n  line\nc: |2+\n\nd: |+\n  a\n\n");
    prints("{\"k\\nl\":2}", "? |-\n  k\n  l\n: 2\n");
    prints(
        "{\"a\":\"x: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        " ccc\"}",
        "a: 'x: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
        "  ccc'\n");
    prints("[]", "[]\n");
    prints("\"a\"", "a\n");
    prints("12", "12\n");
}

static void quotes_strings_that_would_read_back_as_something_else(void **state)
{
    static const struct {
        dv_str text;
        const char *yaml;
    } rows[] = {
        {DV_STR_INIT("plain text"),                   "plain text"                      },
        {DV_STR_INIT("yes"),                          "\"yes\""                         },
        {DV_STR_INIT("Off"),                          "\"Off\""                         },
        {DV_STR_INIT("n"),                            "\"n\""                           },
        {DV_STR_INIT("~"),                            "\"~\""                           },
        {DV_STR_INIT("null"),                         "\"null\""                        },
        {DV_STR_INIT("12"),                           "\"12\""                          },
        {DV_STR_INIT("0x1F"),                         "\"0x1F\""                        },
        {DV_STR_INIT("1_000"),                        "\"1_000\""                       },
        {DV_STR_INIT("1e3"),                          "\"1e3\""                         },
        {DV_STR_INIT(".inf"),                         "\".inf\""                        },
        {DV_STR_INIT("12:30:45"),                     "\"12:30:45\""                    },
        {DV_STR_INIT("-1_0:59.5"),                    "\"-1_0:59.5\""                   },
        {DV_STR_INIT("12:60"),                        "12:60"                           },
        {DV_STR_INIT("2001-01-01"),                   "\"2001-01-01\""                  },
        {DV_STR_INIT("2001-1-1T1:2:3.5Z"),            "\"2001-1-1T1:2:3.5Z\""           },
        {DV_STR_INIT("2001-12-14t21:59:43.10-05:00"), "\"2001-12-14t21:59:43.10-05:00\""},
        {DV_STR_INIT("2004-02-29 1:2:3"),             "\"2004-02-29 1:2:3\""            },
        {DV_STR_INIT("2001-02-29"),                   "2001-02-29"                      },
        {DV_STR_INIT("2001-13-01"),                   "2001-13-01"                      },
        {DV_STR_INIT("2001-01-01T24:00:00Z"),         "2001-01-01T24:00:00Z"            },
        {DV_STR_INIT("80Gi"),                         "80Gi"                            },
        {DV_STR_INIT("1.2.3"),                        "1.2.3"                           },
        {DV_STR_INIT("<<"),                           "<<"                              },
        {DV_STR_INIT("- a"),                          "'- a'"                           },
        {DV_STR_INIT("a: b"),                         "'a: b'"                          },
        {DV_STR_INIT("a #b"),                         "'a #b'"                          },
        {DV_STR_INIT(" a"),                           "' a'"                            },
        {DV_STR_INIT("{a"),                           "'{a'"                            },
        {DV_STR_INIT("*a"),                           "'*a'"                            },
        {DV_STR_INIT("---"),                          "'---'"                           },
        {DV_STR_INIT("a\tb"),                         "\"a\\tb\""                       },
        {DV_STR_INIT("a\0b"),                         "\"a\\0b\""                       },
        {DV_STR_INIT("a\r\nb"),                       "\"a\\r\\nb\""                    },
        {DV_STR_INIT("\xc3\xa4"),                     "\xc3\xa4"                        },
        {DV_STR_INIT("\xf0\x9f\x98\x80"),             "\"\\U0001F600\""                 },
 /* kubectl prints these two so that they read back as something else */
        {DV_STR_INIT("a\xc2\x85"
                     "b"),
         "\"a\\Nb\""                                                                    },
        {DV_STR_INIT("a\xe2\x80\xa8"
                     "b"),
         "\"a\\Lb\""                                                                    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_json *node = dv_json_new_str(rows[i].text, arena);
        dv_str text = print_yaml(node, NULL);
        struct dv_err err;
        struct dv_json *read = dv_yaml_parse(text, NULL, arena, &err);

        assert_str(text, dv_str_to_c(dv_str_printf(arena, "%s\n", rows[i].yaml), arena));
        assert_ok(read, &err);
        assert_true(dv_json_eq(node, read));
    }
}

static void keys_are_quoted_too(void **state)
{
    (void)state;
    assert_str(print_yaml(parse("{\"<<\":1,\"on\":2,\"1\":3,\"\":4,\"a b\":5}"), NULL),
               "\"<<\": 1\n\"on\": 2\n\"1\": 3\n\"\": 4\na b: 5\n");
}

static void a_number_beyond_doubles_stays_a_number(void **state)
{
    struct dv_json *doc = parse("[1e400,-2E+999,1.0,123456789012345678901234567890]");
    dv_str text = print_yaml(doc, NULL);
    struct dv_err err;
    struct dv_json *read = dv_yaml_parse(text, NULL, arena, &err);

    (void)state;
    assert_str(text,
               "- !!float 1e400\n- !!float -2E+999\n- 1.0\n- 123456789012345678901234567890\n");
    assert_ok(read, &err);
    assert_true(dv_json_eq(doc, read));
}

static void sorts_keys_by_the_numbers_in_them(void **state)
{
    const struct dv_json_style sorted = {.sort_keys = true};

    (void)state;
    assert_str(print_yaml(parse("{\"a10\":0,\"b\":0,\"a2\":0,\"a02\":0,\"a\":0,\"a-b\":0,\"A\":0,"
                                "\"a10b\":0,\"ab\":{\"d\":0,\"c\":0},\"a.1\":0,\"9\":0,\"10\":0}"),
                          &sorted),
               "\"9\": 0\n\"10\": 0\nA: 0\na: 0\na-b: 0\na.1: 0\na2: 0\na02: 0\na10: 0\na10b: 0\n"
               "ab:\n  c: 0\n  d: 0\nb: 0\n");
}

static void printing_stops_at_the_ceiling(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_json *list = dv_json_new_array(arena);
    struct dv_err err;

    (void)state;
    for (int i = 0; i < 10000; i++)
        dv_json_append(list, dv_json_new_str(DV_STR("a string"), arena));
    dv_buf_init(&buf, 1000);
    dv_yaml_print(list, NULL, &buf);
    assert_false(dv_buf_check(&buf, "document", &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "document");
    assert_true(buf.n <= 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        doc_test(prints_documents_as_kubectl_does),
        doc_test(quotes_strings_that_would_read_back_as_something_else),
        doc_test(keys_are_quoted_too),
        doc_test(a_number_beyond_doubles_stays_a_number),
        doc_test(sorts_keys_by_the_numbers_in_them),
        doc_test(printing_stops_at_the_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
