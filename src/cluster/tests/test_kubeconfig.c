/* Kubeconfigs, and what a pod finds. */
#include "support/dvtest.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/remote.h"
#include "cluster/remote/exec_plugin.h"

struct place {
    char dir[64];
    struct dv_arena *arena;
};

static int place_start(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    assert_non_null(place);
    (void)snprintf(place->dir, sizeof(place->dir), "/tmp/dv-kube-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    place->arena = dv_arena_new();
    *state = place;
    return 0;
}

static int place_end(void **state)
{
    static const char *const names[] = {"ca.crt", "token", "namespace", "config", "key"};
    struct place *place = *state;
    char path[128];

    for (size_t i = 0; i < DV_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", place->dir, names[i]);
        (void)unlink(path); /* not every test has it */
    }
    assert_int_equal(rmdir(place->dir), 0);
    dv_arena_free(place->arena);
    free(place);
    return 0;
}

static dv_str put(struct place *place, const char *name, const char *text)
{
    dv_str path = dv_str_printf(place->arena, "%s/%s", place->dir, name);
    FILE *file = fopen(dv_str_to_c(path, place->arena), "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

#define HEAD                                                                                       \
    "apiVersion: v1\nkind: Config\ncurrent-context: here\n"                                        \
    "contexts:\n"                                                                                  \
    "- {name: there, context: {cluster: far, user: me}}\n"                                         \
    "- {name: here, context: {cluster: near, user: me, namespace: mine}}\n"                        \
    "- {name: nobody, context: {cluster: near}}\n"
#define CLUSTER(text) "clusters:\n- {name: near, cluster: {" text "}}\n"
#define USER(text) "users:\n- {name: me, user: {" text "}}\n"

static bool parse(struct place *place, const char *text, const char *context,
                  struct dv_kubeconfig *config, struct dv_err *err)
{
    return dv_kubeconfig_parse(dv_str_from_c(text), dv_str_from_c(place->dir),
                               dv_str_from_c(context), place->arena, config, err);
}

static void reads_the_current_context(void **state)
{
    struct dv_kubeconfig config;
    struct dv_err err;

    assert_ok(parse(*state,
                    HEAD CLUSTER("server: 'https://a:1', certificate-authority-data: Q0E=")
                        USER("token: abc, client-certificate-data: Q0VSVA==, client-key-data: "
                             "S0VZ, exec: null"),
                    "", &config, &err),
              &err);
    assert_str(config.server, "https://a:1");
    assert_str(config.ca, "CA");
    assert_str(config.cert, "CERT");
    assert_str(config.key, "KEY");
    assert_str(config.token, "abc");
    assert_str(config.namespace, "mine");
    assert_int_equal(config.token_file.n, 0);
}

static void reads_another_context(void **state)
{
    struct dv_kubeconfig config;
    struct dv_err err;

    assert_ok(parse(*state, HEAD CLUSTER("server: 'http://a'") USER("exec: {command: x}"), "nobody",
                    &config, &err),
              &err);
    assert_str(config.server, "http://a");
    assert_int_equal(config.namespace.n + config.token.n, 0);
}

static void sends_tokens_in_plain_only_to_this_machine(void **state)
{
    static const struct {
        const char *server;
        bool is_taken;
    } cases[] = {
        {"https://a",              true },
        {"http://127.0.0.1:80",    true },
        {"http://127.9.9.9/x",     true },
        {"http://localhost",       true },
        {"http://localhost:80/",   true },
        {"http://[::1]:80",        true },
        {"http://10.0.0.1",        false},
        {"http://localhost.a.com", false},
        {"http://127.a.com",       false},
        {"http://a.com/127.0.0.1", false},
        {"http://user@10.0.0.1",   false},
        {"HTTPS",                  false},
    };
    struct place *place = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_kubeconfig config;
        struct dv_err err;
        dv_str text = dv_str_printf(
            place->arena,
            HEAD "clusters: [{name: near, cluster: {server: '%s'}}]\n" USER("token: t"),
            cases[i].server);

        assert_int_equal(parse(place, dv_str_to_c(text, place->arena), "", &config, &err),
                         cases[i].is_taken);
    }
}

static void reads_json_too(void **state)
{
    struct dv_kubeconfig config;
    struct dv_err err;

    assert_ok(parse(*state,
                    "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{"
                    "\"cluster\":\"k\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":"
                    "\"https://x\"}}]}",
                    "", &config, &err),
              &err);
    assert_str(config.server, "https://x");
}

static void files_are_found_beside_the_kubeconfig(void **state)
{
    struct place *place = *state;
    struct dv_kubeconfig config;
    struct dv_err err;
    dv_str path = put(place, "config",
                      HEAD CLUSTER("server: 'https://a', certificate-authority: ca.crt")
                          USER("token: old, tokenFile: token"));
    dv_str relative = dv_str_printf(place->arena, "%s/config", place->dir + 1);

    (void)put(place, "ca.crt", "CA");
    (void)put(place, "token", " fresh\n");
    assert_ok(dv_kubeconfig_load(path, DV_STR_NONE, place->arena, &config, &err), &err);
    assert_str(config.ca, "CA");
    assert_str(config.token, "fresh"); /* the file counts more */
    assert_str(config.token_file,
               dv_str_to_c(dv_str_printf(place->arena, "%s/token", place->dir), place->arena));
    assert_int_equal(chdir("/"), 0); /* a relative path: files are still beside it */
    assert_ok(dv_kubeconfig_load(relative, DV_STR_NONE, place->arena, &config, &err), &err);
    assert_str(config.token, "fresh");
    assert_str(config.ca, "CA");
}

static void refuses_what_it_cannot_do_or_find(void **state)
{
    static const struct {
        const char *text;
        const char *context;
        const char *message;
    } cases[] = {
        {"",                                                                     "",     "it has no current-context"               },
        {"[]",                                                                   "",     "it has no current-context"               },
        {"{",                                                                    "",     "kubeconfig"                              },
        {"current-context: 7",                                                   "",     "expected a string"                       },
        {HEAD,                                                                   "lost", "there is no context \"lost\" in contexts"},
        {HEAD,                                                                   "",     "there is no cluster \"near\" in clusters"},
        {HEAD "clusters: [{name: near}]",                                        "",     "the cluster \"near\" is empty"           },
        {HEAD CLUSTER(""),                                                       "",     "the cluster has no server"               },
        {HEAD CLUSTER("server: 7"),                                              "",     "expected a string"                       },
        {HEAD CLUSTER("server: 'https://a', insecure-skip-tls-verify: true"),    "",
         "insecure-skip-tls-verify: "                                                                                              },
        {HEAD CLUSTER("server: 'https://a', insecure-skip-tls-verify: maybe"),   "",
         "expected a boolean"                                                                                                      },
        {HEAD CLUSTER("server: 'https://a', proxy-url: 'http://p'"),             "",     "proxy-url: "                             },
        {HEAD CLUSTER("server: 'https://a', tls-server-name: b"),                "",     "tls-server-name: "                       },
        {HEAD CLUSTER("server: 'https://a', certificate-authority-data: '%'"),   "",
         "certificate-authority-data is not base64"                                                                                },
        {HEAD CLUSTER("server: 'https://a', certificate-authority: gone"),       "",
         "certificate-authority: "                                                                                                 },
        {HEAD CLUSTER("server: 'https://a'"),                                    "",     "there is no user \"me\" in users"        },
        {HEAD CLUSTER("server: 'https://a'") USER("exec: {command: x}"),         "",
         "exec: apiVersion \"\": want"                                                                                             },
        {HEAD CLUSTER("server: 'https://a'") USER("auth-provider: {name: gcp}"), "",
         "auth-provider: nobody has them"                                                                                          },
        {HEAD CLUSTER("server: 'https://a'") USER("username: a, password: b"),   "",     "username: "                              },
        {HEAD CLUSTER("server: 'https://a'") USER("token: t, as: root"),         "",     "as: we do not act"                       },
        {HEAD CLUSTER("server: 'http://10.0.0.1'") USER("token: t"),             "",     "only under TLS"                          },
        {HEAD CLUSTER("server: 'https://a'") USER("token: 123"),                 "",     "expected a string"                       },
        {HEAD CLUSTER("server: 'https://a'") USER("tokenFile: gone"),            "",     "tokenFile: "                             },
    };

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_kubeconfig config;
        struct dv_err err;

        if (parse(*state, cases[i].text, cases[i].context, &config, &err))
            fail_msg("case %zu was taken", i);
        assert_err(&err, err.code, cases[i].message);
        assert_err(&err, err.code, "kubeconfig");
    }
}

static void finds_a_service_account(void **state)
{
    struct place *place = *state;
    dv_str dir = dv_str_from_c(place->dir);
    struct dv_kubeconfig config;
    struct dv_err err;

    assert_false(
        dv_kubeconfig_in_cluster(DV_STR_NONE, DV_STR("443"), dir, place->arena, &config, &err));
    assert_int_equal(err.code, DV_NOT_FOUND);
    (void)put(place, "token", "tok\n");
    assert_false(dv_kubeconfig_in_cluster(DV_STR("10.0.0.1"), DV_STR("443"), dir, place->arena,
                                          &config, &err));
    assert_err(&err, err.code, "ca.crt");
    (void)put(place, "ca.crt", "CA");
    assert_ok(dv_kubeconfig_in_cluster(DV_STR("10.0.0.1"), DV_STR("443"), dir, place->arena,
                                       &config, &err),
              &err);
    assert_str(config.server, "https://10.0.0.1:443");
    assert_str(config.token, "tok");
    assert_str(config.ca, "CA");
    assert_int_equal(config.namespace.n, 0);
    (void)put(place, "namespace", "kube-system\n");
    assert_ok(dv_kubeconfig_in_cluster(DV_STR("fd00::1"), DV_STR("6443"), dir, place->arena,
                                       &config, &err),
              &err);
    assert_str(config.server, "https://[fd00::1]:6443");
    assert_str(config.namespace, "kube-system");
    (void)put(place, "token", "\n");
    assert_false(dv_kubeconfig_in_cluster(DV_STR("10.0.0.1"), DV_STR("443"), dir, place->arena,
                                          &config, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "is empty");
}

/* ---- programs for credentials ---- */

#define V1 "client.authentication.k8s.io/v1"
#define EXEC(more) HEAD CLUSTER("server: 'https://a'") USER("exec: {apiVersion: " V1 more "}")

static void a_program_for_credentials_is_read(void **state)
{
    static const char info[] =
        "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"spec\":{";
    struct dv_kubeconfig config;
    struct dv_err err;

    assert_ok(
        parse(*state,
              EXEC(", command: ./aws, args: [eks, get-token], env: [{name: A, value: 'b c'}], "
                   "provideClusterInfo: true"),
              "", &config, &err),
        &err);
    assert_non_null(config.exec);
    assert_true(dv_str_ends_with(config.exec->command, DV_STR("/./aws")));
    assert_int_equal(config.exec->n_args, 2);
    assert_str(config.exec->args[1], "get-token");
    assert_int_equal(config.exec->n_env, 2);
    assert_str(config.exec->env[0], "A=b c");
    assert_true(dv_str_starts_with(config.exec->env[1], dv_str_from_c(info)));
    assert_true(dv_str_find(config.exec->env[1], DV_STR("\"server\":\"https://a\"")) <
                config.exec->env[1].n);
    assert_ok(
        parse(*state, EXEC(", command: aws, interactiveMode: IfAvailable"), "", &config, &err),
        &err);
    assert_str(config.exec->command, "aws"); /* it is found in PATH */
    assert_ok(parse(*state,
                    HEAD CLUSTER("server: 'https://a'") USER("token: t, exec: {command: x}"), "",
                    &config, &err),
              &err);
    assert_null(config.exec);
}

static void what_a_program_says_is_read(void **state)
{
#define SAYS(status) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"
    static const struct {
        const char *text;
        const char *token; /* NULL: it is refused */
        const char *refusal;
        int64_t ends_s;
    } cases[] = {
        {SAYS("{\"token\":\"t\"}"),                                                               "t",  NULL,                  0},
        {SAYS("{\"token\":\"t\",\"expirationTimestamp\":\"1970-01-02T00:00:00Z\"}"),              "t",  NULL,
         86400                                                                                                                  },
        {SAYS("{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}"),                       "",   NULL,                  0},
        {SAYS("{\"clientCertificateData\":\"c\"}"),                                               NULL, "without its key",     0},
        {SAYS("{\"token\":\"\"}"),                                                                NULL, "neither a token nor", 0},
        {SAYS("{}"),                                                                              NULL, "neither a token nor", 0},
        {SAYS("null"),                                                                            NULL, "neither a token nor", 0},
        {SAYS("[]"),                                                                              NULL, "neither a token nor", 0},
        {SAYS("{\"token\":5}"),                                                                   NULL, "token",               0},
        {SAYS("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"),                              NULL, "is no time",          0},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         NULL,                                                                                          "apiVersion",          0},
        {"{\"kind\":\"Status\"}",                                                                 NULL, "kind \"Status\"",     0},
        {"",                                                                                      NULL, "",                    0},
        {"token",                                                                                 NULL, "",                    0},
    };
    struct place *place = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_exec_answer answer;
        struct dv_err err;
        bool is_good = dv_exec_answer_parse(dv_str_from_c(cases[i].text), DV_STR(V1), place->arena,
                                            &answer, &err);

        if (!cases[i].token) {
            assert_false(is_good);
            assert_err(&err, DV_INVALID_ARGUMENT, cases[i].refusal);
            continue;
        }
        assert_ok(is_good, &err);
        assert_str(answer.token, cases[i].token);
        assert_true(answer.ends_s == cases[i].ends_s);
    }
}

static void a_program_is_run(void **state)
{
    static const dv_str env[] = {DV_STR_INIT("DAVIT_TEST=secret"), DV_STR_INIT("PWD=/other")};
    static const struct {
        const char *script;
        const char *token; /* NULL: it fails */
        enum dv_code code;
        const char *text;
    } cases[] = {
        {"read x; printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
         "\",\"status\":{\"token\":\"%s\"}}' $DAVIT_TEST$x", "secret", DV_OK,                 NULL                                 },
        {"exit 3",                                                    NULL,     DV_UNAVAILABLE,        "exec: sh: it ended with exit code 3"},
        {"kill -9 $$",                                                NULL,     DV_UNAVAILABLE,        "it ended with signal 9"             },
        {"echo no; exit 0",                                           NULL,     DV_INVALID_ARGUMENT,   "exec: sh: "                         },
        {"yes",                                                       NULL,     DV_RESOURCE_EXHAUSTED, "what it prints"                     },
    };
    struct place *place = *state;

    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        const dv_str args[] = {DV_STR("-c"), dv_str_from_c(cases[i].script)};
        const struct dv_exec_plugin plugin = {.command = DV_STR("sh"),
                                              .args = args,
                                              .n_args = DV_COUNT(args),
                                              .env = env,
                                              .n_env = DV_COUNT(env),
                                              .api_version = DV_STR(V1)};
        struct dv_exec_answer answer;
        struct dv_err err;
        bool is_good = dv_exec_plugin_run(&plugin, NULL, place->arena, &answer, &err);

        if (cases[i].token) {
            assert_ok(is_good, &err);
            assert_str(answer.token, cases[i].token);
        } else {
            assert_false(is_good);
            assert_err(&err, cases[i].code, cases[i].text);
        }
    }
}

static void a_program_that_is_not_there_or_not_wanted_is_told(void **state)
{
    static const dv_str args[] = {DV_STR_INIT("1000")};
    struct dv_exec_plugin plugin = {.command = DV_STR("no-such-program"),
                                    .api_version = DV_STR(V1),
                                    .hint = DV_STR("install it")};
    struct place *place = *state;
    atomic_bool stop = true;
    struct dv_exec_answer answer;
    struct dv_err err;

    assert_false(dv_exec_plugin_run(&plugin, NULL, place->arena, &answer, &err));
    assert_err(&err, DV_NOT_FOUND, "exec: no-such-program: it cannot be run");
    assert_err(&err, DV_NOT_FOUND, "install it");
    plugin = (struct dv_exec_plugin){
        .command = DV_STR("sleep"), .args = args, .n_args = 1, .api_version = DV_STR(V1)};
    assert_false(dv_exec_plugin_run(&plugin, &stop, place->arena, &answer, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_start, place_end)
        TEST(reads_the_current_context),
        TEST(reads_another_context),
        TEST(reads_json_too),
        TEST(sends_tokens_in_plain_only_to_this_machine),
        TEST(files_are_found_beside_the_kubeconfig),
        TEST(refuses_what_it_cannot_do_or_find),
        TEST(finds_a_service_account),
        TEST(a_program_for_credentials_is_read),
        TEST(what_a_program_says_is_read),
        TEST(a_program_is_run),
        TEST(a_program_that_is_not_there_or_not_wanted_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
