#include "cluster/remote/exec_plugin.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "cluster/remote.h"
#include "json/json.h"

#define INFO_BYTES_MAX (2u << 20)
#define WORDS_MAX 1024u
#define INFO_NAME "KUBERNETES_EXEC_INFO"

static const dv_str versions[] = {
    DV_STR_INIT("client.authentication.k8s.io/v1"),
    DV_STR_INIT("client.authentication.k8s.io/v1beta1"),
};

/* ---- what the kubeconfig says ---- */

/* Reads a text that may be absent. */
static bool read_text(const struct dv_json *object, const char *key, dv_str *text,
                      struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    *text = DV_STR_NONE;
    return !node || dv_json_is(node, DV_JSON_NULL) || dv_json_as_str(node, text, err);
}

static size_t count(const struct dv_json *list)
{
    size_t n = 0;

    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at))
        n++;
    return n;
}

static bool check_word(dv_str word, const char *what, struct dv_err *err)
{
    return dv_str_find_char(word, '\0') == word.n ||
           dv_fail(err, DV_INVALID_ARGUMENT, "%s has a zero byte", what);
}

static bool read_args(const struct dv_json *exec, struct dv_arena *arena,
                      struct dv_exec_plugin *plugin, struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(exec, DV_STR("args"));
    size_t n = count(list);
    dv_str *args;

    if (n > WORDS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "args: more than %u", WORDS_MAX);
    args = DV_NEW_ARRAY(arena, dv_str, n);
    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at))
        if (!dv_json_as_str(at, &args[plugin->n_args], err) ||
            !check_word(args[plugin->n_args++], "an argument", err))
            return dv_wrap(err, "args");
    plugin->args = args;
    return true;
}

/* The cluster is told only where it is asked for: it makes the environment long. */
static dv_str print_info(const struct dv_exec_plugin *plugin, const struct dv_kubeconfig *cluster,
                         bool has_cluster, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    DV_CLEANUP(dv_buf_fini) struct dv_buf ca;

    dv_buf_init(&text, INFO_BYTES_MAX);
    dv_buf_init(&ca, INFO_BYTES_MAX);
    dv_buf_printf(&text,
                  INFO_NAME "={\"kind\":\"ExecCredential\",\"apiVersion\":\"%.*s\",\"spec\":{",
                  DV_FMT(plugin->api_version));
    if (has_cluster) {
        dv_base64_encode(cluster->ca, &ca);
        dv_buf_add_c(&text, "\"cluster\":{\"server\":");
        dv_buf_add_json(&text, cluster->server);
        dv_buf_printf(&text, ",\"certificate-authority-data\":\"%.*s\"},", DV_FMT(dv_buf_str(&ca)));
    }
    dv_buf_add_c(&text, "\"interactive\":false}}");
    return dv_str_copy(dv_buf_str(&text), arena);
}

static bool read_env(const struct dv_json *exec, struct dv_arena *arena,
                     struct dv_exec_plugin *plugin, struct dv_err *err)
{
    const struct dv_json *list = dv_json_get(exec, DV_STR("env"));
    size_t n = count(list);
    dv_str *env;

    if (n > WORDS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "env: more than %u", WORDS_MAX);
    env = DV_NEW_ARRAY(arena, dv_str, n + 1);
    for (const struct dv_json *at = dv_json_first(list); at; at = dv_json_next(at)) {
        dv_str name, value;

        if (!read_text(at, "name", &name, err) || !read_text(at, "value", &value, err) ||
            !check_word(name, "a name", err) || !check_word(value, "a value", err))
            return dv_wrap(err, "env");
        if (name.n == 0 || dv_str_find_char(name, '=') < name.n)
            return dv_fail(err, DV_INVALID_ARGUMENT, "env: \"%.*s\" is no name of a variable",
                           DV_FMT(dv_str_slice(name, 0, 80)));
        env[plugin->n_env++] = dv_str_printf(arena, "%.*s=%.*s", DV_FMT(name), DV_FMT(value));
    }
    plugin->env = env;
    return true;
}

static bool check_version(dv_str version, struct dv_err *err)
{
    for (size_t i = 0; i < DV_COUNT(versions); i++)
        if (dv_str_eq(versions[i], version))
            return true;
    return dv_fail(err, DV_INVALID_ARGUMENT, "apiVersion \"%.*s\": want %.*s or %.*s",
                   DV_FMT(dv_str_slice(version, 0, 80)), DV_FMT(versions[0]), DV_FMT(versions[1]));
}

static bool read_flag(const struct dv_json *exec, const char *key, bool *flag, struct dv_err *err)
{
    const struct dv_json *node = dv_json_get(exec, dv_str_from_c(key));

    *flag = false;
    return !node || dv_json_is(node, DV_JSON_NULL) || dv_json_as_bool(node, flag, err);
}

bool dv_exec_plugin_parse(const struct dv_json *exec, const struct dv_kubeconfig *cluster,
                          dv_str dir, struct dv_arena *arena, struct dv_exec_plugin *plugin,
                          struct dv_err *err)
{
    struct dv_exec_plugin read = {0};
    bool has_cluster;
    dv_str mode;

    if (!read_text(exec, "apiVersion", &read.api_version, err) ||
        !read_text(exec, "command", &read.command, err) ||
        !read_text(exec, "installHint", &read.hint, err) ||
        !read_text(exec, "interactiveMode", &mode, err) ||
        !read_flag(exec, "provideClusterInfo", &has_cluster, err) ||
        !check_version(read.api_version, err) || !check_word(read.command, "command", err))
        return false;
    if (read.command.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "it has no command");
    if (dv_str_eq(mode, DV_STR("Always")))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "interactiveMode: Always: programs for credentials get no terminal here");
    if (!read_args(exec, arena, &read, err) || !read_env(exec, arena, &read, err))
        return false;
    if (dv_str_find_char(read.command, '/') < read.command.n && read.command.p[0] != '/' &&
        dir.n > 0)
        read.command = dv_str_printf(arena, "%.*s/%.*s", DV_FMT(dir), DV_FMT(read.command));
    /* There is room for it behind the others. */
    ((dv_str *)(uintptr_t)read.env)[read.n_env++] = print_info(&read, cluster, has_cluster, arena);
    *plugin = read;
    return true;
}

static const dv_str *copy_all(const dv_str *texts, size_t n, struct dv_arena *arena)
{
    dv_str *copies = DV_NEW_ARRAY(arena, dv_str, n);

    for (size_t i = 0; i < n; i++)
        copies[i] = dv_str_copy(texts[i], arena);
    return copies;
}

void dv_exec_plugin_copy(const struct dv_exec_plugin *plugin, struct dv_arena *arena,
                         struct dv_exec_plugin *copy)
{
    *copy = (struct dv_exec_plugin){.command = dv_str_copy(plugin->command, arena),
                                    .args = copy_all(plugin->args, plugin->n_args, arena),
                                    .n_args = plugin->n_args,
                                    .env = copy_all(plugin->env, plugin->n_env, arena),
                                    .n_env = plugin->n_env,
                                    .api_version = dv_str_copy(plugin->api_version, arena),
                                    .hint = dv_str_copy(plugin->hint, arena)};
}

/* ---- what the program says ---- */

static bool read_end(const struct dv_json *status, int64_t *ends_s, struct dv_err *err)
{
    struct dv_rfc3339 end;
    dv_str text;

    if (!read_text(status, "expirationTimestamp", &text, err))
        return false;
    if (text.n == 0)
        return true;
    if (!dv_rfc3339_parse(text, DV_RFC3339_LAX, &end))
        return dv_fail(err, DV_INVALID_ARGUMENT, "expirationTimestamp \"%.*s\" is no time",
                       DV_FMT(dv_str_slice(text, 0, 80)));
    *ends_s = end.seconds;
    return true;
}

bool dv_exec_answer_parse(dv_str text, dv_str api_version, struct dv_arena *arena,
                          struct dv_exec_answer *answer, struct dv_err *err)
{
    const struct dv_json *doc = dv_json_parse(text, NULL, arena, err);
    const struct dv_json *status;
    struct dv_exec_answer read = {0};
    dv_str kind, version;

    if (!doc)
        return false;
    if (!read_text(doc, "kind", &kind, err) || !read_text(doc, "apiVersion", &version, err))
        return false;
    if (!dv_str_eq(kind, DV_STR("ExecCredential")) || !dv_str_eq(version, api_version))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "it is kind \"%.*s\", apiVersion \"%.*s\", not ExecCredential, %.*s",
                       DV_FMT(dv_str_slice(kind, 0, 40)), DV_FMT(dv_str_slice(version, 0, 60)),
                       DV_FMT(api_version));
    status = dv_json_get(doc, DV_STR("status"));
    if (!read_text(status, "token", &read.token, err) ||
        !read_text(status, "clientCertificateData", &read.cert, err) ||
        !read_text(status, "clientKeyData", &read.key, err) || !read_end(status, &read.ends_s, err))
        return false;
    if ((read.cert.n > 0) != (read.key.n > 0))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "it has a certificate without its key, or a key "
                       "without its certificate");
    if (read.token.n == 0 && read.cert.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "it has neither a token nor a certificate");
    *answer = read;
    return true;
}
