/* Which credentials are used for which image, and in which order. */
#include "support/docs.h"

#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "pod/runner/pull_secret.h"
#include "resource/resource.h"
#include "support/dvtest.h"

#define NEW "kubernetes.io/dockerconfigjson"
#define OLD "kubernetes.io/dockercfg"

static struct dv_api_secret *make(const char *type, const char *text)
{
    struct dv_api_secret *secret = DV_NEW(arena, struct dv_api_secret);
    struct dv_str_entry *data = DV_NEW(arena, struct dv_str_entry);
    bool is_new = dv_str_eq(dv_str_from_c(type), DV_STR(NEW));

    data->key = is_new ? DV_STR(".dockerconfigjson") : DV_STR(".dockercfg");
    data->value = dv_str_from_c(text);
    secret->type = dv_str_from_c(type);
    secret->data = data;
    secret->n_data = 1;
    return secret;
}

static const struct {
    const char *what;
    const char *type;
    const char *text;
    const char *image;
    const char *found; /* "user:password " each */
} cases[] = {
    {"a host",                     NEW,      "{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":\"p\"}}}",      "r.io/a:1",
     "u:p "                                                                                                                                     },
    {"another host",               NEW,      "{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":\"p\"}}}",
     "s.io/a:1",                                                                                                                      ""        },
    {"base64 of both",             NEW,      "{\"auths\":{\"r.io\":{\"auth\":\"dTpwOnE=\"}}}",                      "r.io/a",         "u:p:q "  },
    {"base64 of one",              NEW,      "{\"auths\":{\"r.io\":{\"auth\":\"dQ==\"}}}",                          "r.io/a",         ""        },
    {"the old form",               OLD,      "{\"https://r.io/v1/\":{\"username\":\"u\",\"password\":\"p\"}}",
     "r.io/a",                                                                                                                        "u:p "    },
    {"another type",               "Opaque", "{\"r.io\":{\"username\":\"u\",\"password\":\"p\"}}",                  "r.io/a",         ""        },
    {"a path",                     NEW,
     "{\"auths\":{\"r.io/team\":{\"username\":\"t\",\"password\":\"p\"},\"r.io\":{\"username\":"
     "\"u\",\"password\":\"p\"}}}",                                                                                 "r.io/team/a",    "t:p u:p "},
    {"a path that is not its own", NEW,
     "{\"auths\":{\"r.io/team\":{\"username\":\"t\",\"password\":\"p\"}}}",                                         "r.io/other/a",   ""        },
    {"a pattern",                  NEW,      "{\"auths\":{\"*.r.io\":{\"username\":\"u\",\"password\":\"p\"}}}",
     "x.r.io/a",                                                                                                                      "u:p "    },
    {"a pattern is one part",      NEW,
     "{\"auths\":{\"*.r.io\":{\"username\":\"u\",\"password\":\"p\"}}}",                                            "x.y.r.io/a",     ""        },
    {"a port",                     NEW,      "{\"auths\":{\"r.io:5000\":{\"username\":\"u\",\"password\":\"p\"}}}",
     "r.io:5000/a",                                                                                                                   "u:p "    },
    {"another port",               NEW,      "{\"auths\":{\"r.io:5000\":{\"username\":\"u\",\"password\":\"p\"}}}",
     "r.io/a",                                                                                                                        ""        },
    {"the default registry",       NEW,
     "{\"auths\":{\"https://index.docker.io/v1/\":{\"username\":\"u\",\"password\":\"p\"}}}",                       "busybox:latest", "u:p "    },
    {"nothing",                    NEW,      "{\"auths\":{}}",                                                      "r.io/a",         ""        },
    {"no document",                NEW,      "{",                                                                   "r.io/a",         ""        },
    {"no object",                  NEW,      "[1]",                                                                 "r.io/a",         ""        },
    {"no credentials",             NEW,      "{\"auths\":{\"r.io\":\"x\",\"\":{\"username\":\"u\"}}}",              "r.io/a",         ""        },
};

static void finds_credentials_by_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const struct dv_api_secret *secret = make(cases[i].type, cases[i].text);
        struct dv_pull_auth *auths;
        size_t n = dv_pull_secret_find(&secret, 1, dv_str_from_c(cases[i].image), arena, &auths);
        dv_str found = DV_STR("");

        for (size_t k = 0; k < n; k++)
            found = dv_str_printf(arena, "%.*s%.*s:%.*s ", DV_FMT(found), DV_FMT(auths[k].username),
                                  DV_FMT(auths[k].password));
        if (!dv_str_eq(found, dv_str_from_c(cases[i].found)))
            fail_msg("%s: \"%.*s\"", cases[i].what, DV_FMT(found));
    }
}

static void tries_secrets_in_their_order(void **state)
{
    const struct dv_api_secret *secrets[2];
    struct dv_pull_auth *auths;

    (void)state;
    secrets[0] = make(NEW, "{\"auths\":{\"r.io\":{\"username\":\"first\",\"password\":\"p\"}}}");
    secrets[1] = make(OLD, "{\"r.io\":{\"username\":\"second\",\"password\":\"p\"}}");
    assert_int_equal(dv_pull_secret_find(secrets, 2, DV_STR("r.io/a"), arena, &auths), 2);
    assert_str(auths[0].username, "first");
    assert_str(auths[1].username, "second");
}

static void knows_registries(void **state)
{
    static const struct {
        const char *image;
        const char *registry;
    } rows[] = {
        {"busybox:latest",                "index.docker.io"      },
        {"team/app:1",                    "index.docker.io"      },
        {"docker.io/team/app:1",          "index.docker.io"      },
        {"localhost/app:1",               "localhost"            },
        {"registry.example/app:1",        "registry.example"     },
        {"registry:5000/app@sha256:00",   "registry:5000"        },
        {"registry.example:5000/a/b/c:1", "registry.example:5000"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_str(dv_pull_registry(dv_str_from_c(rows[i].image)), rows[i].registry);
}

/* Whoever makes pods and secrets decides how many there are. */
static void reads_some_megabytes_and_no_more(void **state)
{
    static const char before[] = "{\"auths\":{\"r.io\":{\"username\":\"u\",\"password\":\"p\"}}}";
    size_t n = 1u << 20;
    char *large = DV_NEW_ARRAY(arena, char, n + 1);
    const struct dv_api_secret *secrets[8];
    struct dv_pull_auth *auths;

    (void)state;
    memset(large, ' ', n);
    memcpy(large, before, sizeof(before) - 1);
    for (size_t i = 0; i < DV_COUNT(secrets); i++)
        secrets[i] = make(NEW, large);
    assert_int_equal(
        dv_pull_secret_find(secrets, DV_COUNT(secrets), DV_STR("r.io/a"), arena, &auths), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_registries),
        doc_test(finds_credentials_by_address),
        doc_test(tries_secrets_in_their_order),
        doc_test(reads_some_megabytes_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
