/* The pure parts of the engine over an API server: what is asked, and what answers say. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "cluster/remote/remote_engine.h"
#include "cluster/remote/remote_event.h"
#include "resource/resource.h"

static void prints_the_paths_of_the_api(void **state)
{
    static const struct {
        enum dv_kind_id kind;
        size_t version;
        const char *namespace;
        const char *name;
        const char *subresource;
        const char *path;
    } cases[] = {
        {DV_KIND_POD,   0, "",    "",     "",        "/api/v1/pods"                                },
        {DV_KIND_POD,   0, "s",   "",     "",        "/api/v1/namespaces/s/pods"                   },
        {DV_KIND_POD,   0, "s",   "web",  "binding", "/api/v1/namespaces/s/pods/web/binding"       },
        {DV_KIND_NODE,  0, "s",   "n.1",  "status",  "/api/v1/nodes/n.1/status"                    },
        {DV_KIND_CLASS, 0, "",    "c",    "",        "/apis/resource.k8s.io/v1/deviceclasses/c"    },
        {DV_KIND_SLICE, 1, "",    "",     "",        "/apis/resource.k8s.io/v1beta2/resourceslices"},
        {DV_KIND_POD,   0, "a/b", "../c", "",        "/api/v1/namespaces/a%2Fb/pods/..%2Fc"        },
        {DV_KIND_POD,   0, "s",   "a?b",  "",        "/api/v1/namespaces/s/pods/a%3Fb"             },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_kind *kind = dv_kind(cases[i].kind);
        struct dv_buf buf;

        dv_buf_init(&buf, 4096);
        dv_remote_path(kind, &kind->versions[cases[i].version], dv_str_from_c(cases[i].namespace),
                       dv_str_from_c(cases[i].name), dv_str_from_c(cases[i].subresource), &buf);
        assert_str(dv_buf_str(&buf), cases[i].path);
        dv_buf_fini(&buf);
    }
}

static void prints_queries(void **state)
{
    struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 4096);
    dv_buf_add_c(&buf, "/p");
    dv_remote_query(&buf, "none", DV_STR_NONE);
    dv_remote_query(&buf, "a", DV_STR("x in (y,z)"));
    dv_remote_query(&buf, "b", DV_STR("k=\xc3\xa9&+%"));
    dv_remote_query_u64(&buf, "c", UINT64_MAX);
    dv_remote_query_u64(&buf, "d", 0);
    assert_str(dv_buf_str(&buf),
               "/p?a=x%20in%20%28y%2Cz%29&b=k%3D%C3%A9%26%2B%25&c=18446744073709551615&d=0");
    dv_buf_fini(&buf);
}

static void reads_what_a_failure_says(void **state)
{
    static const struct {
        unsigned code;
        const char *body;
        const char *reason;
        const char *message;
        bool is_no_path;
    } cases[] = {
        {409, "{\"kind\":\"Status\",\"message\":\"m\",\"reason\":\"Conflict\",\"code\":409}",
         "Conflict",                                                                                      "m",                                             false},
        {409, "{\"kind\":\"Status\",\"message\":\"m\",\"reason\":\"Conflict\"}",              "Conflict", "m",
         false                                                                                                                                                  },
        {502, "{\"kind\":\"Status\",\"message\":\"m\",\"code\":200}",                         "",         "m",                                             false},
        {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{\"name\":\"a\"}}",
         "NotFound",                                                                                      "",                                              false},
        {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{}}",                 "NotFound", "",                                              true },
        {404, "404 page not found\n",                                                         "",         "the server answered 404: 404 page not found\n", true },
        {500, "",                                                                             "",         "the server answered 500: ",                     false},
        {500, "{\"kind\":\"Pod\"}",                                                           "",         "the server answered 500: {\"kind\":\"Pod\"}",   false},
        {500, "{\"kind\":\"Status\",\"code\":\"x\"}",                                         "",
         "the server answered 500: {\"kind\":\"Status\",\"code\":\"x\"}",                                                                                  false},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
        const struct dv_api_status *status =
            dv_remote_status(cases[i].code, dv_str_from_c(cases[i].body), arena);

        assert_int_equal(status->code, cases[i].code);
        assert_str(status->message, cases[i].message);
        if (cases[i].reason[0])
            assert_str(status->reason, cases[i].reason);
        assert_int_equal(dv_remote_is_no_path(status), cases[i].is_no_path);
    }
}

static void reads_when_to_come_again(void **state)
{
    static const struct {
        const char *field;
        bool is_told;
        uint64_t wait_ms;
    } cases[] = {
        {"1",                             true,  1000 },
        {" 7 ",                           true,  7000 },
        {"0",                             true,  0    },
        {"86400",                         true,  60000},
        {"18446744073709551615",          true,  60000},
        {"",                              false, 0    },
        {"-1",                            false, 0    },
        {"Wed, 21 Oct 2015 07:28:00 GMT", false, 0    },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        uint64_t wait_ms = 0;

        assert_int_equal(dv_remote_retry_after(dv_str_from_c(cases[i].field), &wait_ms),
                         cases[i].is_told);
        assert_int_equal(wait_ms, cases[i].wait_ms);
    }
}

static void reads_warnings(void **state)
{
    static const struct {
        const char *field;
        const char *text;
    } cases[] = {
        {"299 - \"unknown field \\\"spec.x\\\"\"", "unknown field \"spec.x\""},
        {"299 - \"plain\"",                        "plain"                   },
        {"299 - \"\"",                             ""                        },
        {"299 - \"a\\\\b\" \"date\"",              "a\\b\" \"date"           },
        {"299 - \"open",                           "299 - \"open"            },
        {"no quotes",                              "no quotes"               },
        {"\"",                                     "\""                      },
        {"\"\\\"",                                 "\\"                      },
        {"",                                       ""                        },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_str(dv_remote_warning(dv_str_from_c(cases[i].field), arena), cases[i].text);
}

/* An object of an older version that does not say so, as items of a list. */
static void reads_items_in_the_version_that_was_asked_for(void **state)
{
    static const char text[] =
        "{\"kind\":\"ResourceSliceList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{"
        "\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"3\"},\"spec\":{\"driver\":\"d\","
        "\"pool\":{\"name\":\"p\",\"generation\":1,\"resourceSliceCount\":1},\"nodeName\":\"n\","
        "\"devices\":[{\"name\":\"gpu\",\"basic\":{\"attributes\":{\"a\":{\"int\":5}}}}]}}]}";
    const struct dv_kind *kind = dv_kind(DV_KIND_SLICE);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_remote_page page;
    const struct dv_api_resource_slice *slice;
    struct dv_err err;

    (void)state;
    assert_str(kind->versions[2].version, "v1beta1");
    assert_ok(
        dv_remote_page_read(kind, &kind->versions[2], dv_str_from_c(text), arena, &page, &err),
        &err);
    assert_int_equal(page.n_objects, 1);
    assert_int_equal(page.version, 7);
    assert_int_equal(page.more.n, 0);
    slice = page.objects[0]->value;
    assert_int_equal(slice->spec.n_devices, 1);
    assert_int_equal(slice->spec.devices[0].n_attributes, 1);
    dv_remote_page_drop(&page);
}

static void gathers_lines_from_parts(void **state)
{
    static const char text[] = "one\n\ntwo words\nx\nthe longest of them all\nend";
    struct dv_remote_lines lines;
    struct dv_err err;

    (void)state;
    for (size_t n = 1; n < sizeof(text); n++) {
        struct dv_buf got;

        dv_buf_init(&got, 4096);
        dv_remote_lines_init(&lines, 23);
        for (size_t at = 0; at < sizeof(text) - 1; at += n) {
            dv_str part = dv_str_slice(dv_str_from_c(text), at, at + n);
            dv_str line;

            while (dv_remote_lines_next(&lines, &part, &line))
                dv_buf_printf(&got, "[%.*s]", DV_FMT(line));
            assert_int_equal(part.n, 0);
        }
        assert_ok(dv_remote_lines_check(&lines, &err), &err);
        assert_str(dv_buf_str(&got), "[one][][two words][x][the longest of them all]");
        dv_buf_fini(&got);
        dv_remote_lines_fini(&lines);
    }
}

static void refuses_lines_that_are_too_long(void **state)
{
    static const char text[] = "short\nfar too long\nshort\n";
    struct dv_remote_lines lines;
    struct dv_err err;

    (void)state;
    for (size_t n = 1; n < sizeof(text); n++) {
        bool is_over = false;
        int n_lines = 0;

        dv_remote_lines_init(&lines, 8);
        for (size_t at = 0; at < sizeof(text) - 1 && !is_over; at += n) {
            dv_str part = dv_str_slice(dv_str_from_c(text), at, at + n);
            dv_str line;

            while (dv_remote_lines_next(&lines, &part, &line))
                n_lines++;
            is_over = !dv_remote_lines_check(&lines, &err);
        }
        assert_true(is_over);
        assert_err(&err, DV_RESOURCE_EXHAUSTED, "an event");
        assert_int_equal(n_lines, 1);
        dv_remote_lines_fini(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_the_paths_of_the_api),
        cmocka_unit_test(prints_queries),
        cmocka_unit_test(reads_what_a_failure_says),
        cmocka_unit_test(reads_when_to_come_again),
        cmocka_unit_test(reads_warnings),
        cmocka_unit_test(reads_items_in_the_version_that_was_asked_for),
        cmocka_unit_test(gathers_lines_from_parts),
        cmocka_unit_test(refuses_lines_that_are_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
