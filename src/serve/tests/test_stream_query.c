#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "serve/pod_stream.h"

#define TEXT_BYTES_MAX 4096u

/* "io-t c=NAME sh|-c 80,443": the flags of stdin, stdout, stderr and tty, and the rest. */
static void print(const struct dv_pod_stream_options *options, struct dv_buf *text)
{
    dv_buf_add_char(text, options->has_stdin ? 'i' : '-');
    dv_buf_add_char(text, options->has_stdout ? 'o' : '-');
    dv_buf_add_char(text, options->has_stderr ? 'e' : '-');
    dv_buf_add_char(text, options->has_tty ? 't' : '-');
    if (options->container.n)
        dv_buf_printf(text, " c=%.*s", DV_FMT(options->container));
    for (size_t i = 0; i < options->n_command; i++)
        dv_buf_printf(text, "%c%.*s", i ? '|' : ' ', DV_FMT(options->command[i]));
    for (size_t i = 0; i < options->n_ports; i++)
        dv_buf_printf(text, "%c%u", i ? ',' : ' ', options->ports[i]);
}

static const struct {
    enum dv_pod_stream_verb verb;
    enum dv_pod_stream_naming naming;
    const char *query;
    const char *read; /* NULL: it is refused */
    const char *refusal;
} cases[] = {
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,
     "command=sh&command=-c&command=a%20b%26c&container=x&stdin=true&stdout=1&stderr=True",     "ioe- c=x sh|-c|a b&c", NULL                       },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "command=sh&stdout=true&stderr=true&tty=true", "-o-t sh",
     NULL                                                                                                                                          },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "command=sh&stdout=false&stderr=0&stdin=true", "i--- sh",
     NULL                                                                                                                                          },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "command=sh&stdout=false&stdout=true&stdin=1", "i--- sh",
     NULL                                                                                                                                          },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "command=&stdout=1",                           "-o-- ",                NULL                       },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "command=sh",                                  NULL,
     "you must specify at least 1 of stdin, stdout, stderr"                                                                                        },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "stdout=1",                                    NULL,                   "at least one command"     },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "stdout=1&command=a%00b",                      NULL,                   "zero byte"                },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_API,  "input=1&output=1&command=sh",                 NULL,                   "at least 1 of"            },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_NODE, "command=sh&input=1&output=1&error=1",         "ioe- sh",              NULL                       },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_NODE, "command=sh&output=1&error=true&tty=1",        "-o-t sh",              NULL                       },
    {DV_POD_EXEC,         DV_POD_STREAM_OF_NODE, "command=sh&container=x&output=1",             "-o-- sh",              NULL                       },
    {DV_POD_ATTACH,       DV_POD_STREAM_OF_API,  "stdout=true",                                 "-o--",                 NULL                       },
    {DV_POD_ATTACH,       DV_POD_STREAM_OF_NODE, "",                                            NULL,                   "at least 1 of"            },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API,  "",                                            "----",                 NULL                       },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API,  "ports=80,443&ports=65535",                    "---- 80,443,65535",
     NULL                                                                                                                                          },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_NODE, "port=80",                                     "---- 80",              NULL                       },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API,  "ports=",                                      NULL,                   "\"ports\" cannot be empty"},
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_NODE, "port=0",                                      NULL,                   "port \"0\" must be > 0"   },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API,  "ports=65536",                                 NULL,
     "unable to parse \"65536\" as a port"                                                                                                         },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API,  "ports=-1",                                    NULL,
     "unable to parse \"-1\" as a port"                                                                                                            },
    {DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API,  "ports=80,,81",                                NULL,                   "unable to parse \"\""     },
};

static void queries_are_read(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf text;
        struct dv_pod_stream_options options;
        struct dv_err err;
        bool is_good = dv_pod_stream_parse(cases[i].verb, cases[i].naming,
                                           dv_str_from_c(cases[i].query), arena, &options, &err);

        dv_buf_init(&text, TEXT_BYTES_MAX);
        if (!cases[i].read) {
            assert_false(is_good);
            assert_err(&err, DV_INVALID_ARGUMENT, cases[i].refusal);
            continue;
        }
        assert_ok(is_good, &err);
        print(&options, &text);
        assert_str(dv_buf_str(&text), cases[i].read);
    }
}

/* What a node is asked for is what the client has asked for; its container is in the path. */
static void a_node_is_asked_for_the_same(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf query;
        DV_CLEANUP(dv_buf_fini) struct dv_buf asked;
        DV_CLEANUP(dv_buf_fini) struct dv_buf got;
        struct dv_pod_stream_options options;
        struct dv_err err;

        dv_buf_init(&query, TEXT_BYTES_MAX);
        dv_buf_init(&asked, TEXT_BYTES_MAX);
        dv_buf_init(&got, TEXT_BYTES_MAX);
        if (!cases[i].read)
            continue;
        assert_ok(dv_pod_stream_parse(cases[i].verb, cases[i].naming, dv_str_from_c(cases[i].query),
                                      arena, &options, &err),
                  &err);
        options.container = DV_STR("");
        print(&options, &asked);
        dv_pod_stream_print(&options, &query);
        assert_ok(dv_pod_stream_parse(cases[i].verb, DV_POD_STREAM_OF_NODE, dv_buf_str(&query),
                                      arena, &options, &err),
                  &err);
        print(&options, &got);
        assert_str(dv_buf_str(&got), dv_buf_c(&asked));
    }
}

static void ports_have_a_limit(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf query;
    struct dv_pod_stream_options options;
    struct dv_err err;

    (void)state;
    dv_buf_init(&query, TEXT_BYTES_MAX);
    dv_buf_add_c(&query, "ports=1");
    for (int i = 0; i < 64; i++)
        dv_buf_add_c(&query, ",1");
    assert_false(dv_pod_stream_parse(DV_POD_PORT_FORWARD, DV_POD_STREAM_OF_API, dv_buf_str(&query),
                                     arena, &options, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "more than 64 ports");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_are_read),
        cmocka_unit_test(a_node_is_asked_for_the_same),
        cmocka_unit_test(ports_have_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
