/* kubeconfig.c - reads where the server is and who we are: from a kubeconfig file, or from what a
 * pod finds in its environment. What a configuration says and we do not do is refused rather than
 * ignored. */
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/str.h"
#include "cluster/remote.h"
#include "cluster/remote/exec_plugin.h"
#include "json/json.h"

/* More than a kubeconfig with a hundred clusters and their certificates has. */
#define CONFIG_BYTES_MAX (4u << 20)
#define FILE_BYTES_MAX (1u << 20)

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct reading {
    dv_str dir;
    struct dv_arena *arena;
    struct dv_err *err;
};

/* Reads a text that may be absent. A number is refused rather than ignored: a token of digits needs
 * quotes. */
static bool read_text(struct reading *reading, const struct dv_json *object, const char *key,
                      dv_str *text)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    *text = DV_STR_NONE;
    return !node || dv_json_is(node, DV_JSON_NULL) || dv_json_as_str(node, text, reading->err);
}

static bool is_set(const struct dv_json *object, const char *key)
{
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    return node && !dv_json_is(node, DV_JSON_NULL);
}

static bool read_flag(struct reading *reading, const struct dv_json *object, const char *key,
                      bool *flag)
{
    *flag = false;
    return !is_set(object, key) ||
           dv_json_as_bool(dv_json_get(object, dv_str_from_c(key)), flag, reading->err);
}

/* What we do not support, and what would change the meaning of a configuration if it were
 * ignored. */
struct refusal {
    const char *key;
    const char *why;
};

static bool refuse(struct reading *reading, const struct dv_json *object,
                   const struct refusal *refusals, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_set(object, refusals[i].key))
            return dv_fail(reading->err, DV_INVALID_ARGUMENT, "%s: %s", refusals[i].key,
                           refusals[i].why);
    return true;
}

/* Finds the entry of that name in a list of {name, <what>: ...}. */
static bool find(struct reading *reading, const struct dv_json *config, const char *list,
                 const char *what, dv_str name, const struct dv_json **found)
{
    const struct dv_json *entries = dv_json_get(config, dv_str_from_c(list));

    for (const struct dv_json *at = dv_json_first(entries); at; at = dv_json_next(at)) {
        dv_str own;

        if (!read_text(reading, at, "name", &own))
            return false;
        if (!dv_str_eq(own, name))
            continue;
        *found = dv_json_get(at, dv_str_from_c(what));
        return dv_json_is(*found, DV_JSON_OBJECT) ||
               dv_fail(reading->err, DV_INVALID_ARGUMENT, "the %s \"%.*s\" is empty", what,
                       DV_FMT(name));
    }
    return dv_fail(reading->err, DV_INVALID_ARGUMENT, "there is no %s \"%.*s\" in %s", what,
                   DV_FMT(name), list);
}

/* Paths are relative to the directory of the configuration. */
static dv_str path_of(const struct reading *reading, dv_str path)
{
    if (dv_str_starts_with(path, DV_STR("/")) || reading->dir.n == 0)
        return path;
    return dv_str_printf(reading->arena, "%.*s/%.*s", DV_FMT(reading->dir), DV_FMT(path));
}

/* Reads `<key>-data` in base64, or the file that `<key>` names. */
static bool read_data(struct reading *reading, const struct dv_json *object, const char *key,
                      dv_str *text)
{
    const char *data_key =
        dv_str_to_c(dv_str_printf(reading->arena, "%s-data", key), reading->arena);
    dv_str data;
    dv_str path;

    if (!read_text(reading, object, data_key, &data) || !read_text(reading, object, key, &path))
        return false;
    if (data.n)
        return dv_base64_decode(dv_str_trim(data), reading->arena, text) ||
               dv_fail(reading->err, DV_INVALID_ARGUMENT, "%s is not base64", data_key);
    if (path.n == 0)
        return true;
    return dv_file_read(path_of(reading, path), FILE_BYTES_MAX, reading->arena, text,
                        reading->err) ||
           dv_wrap(reading->err, "%s", key);
}

static bool read_cluster(struct reading *reading, const struct dv_json *cluster,
                         struct dv_kubeconfig *config)
{
    static const struct refusal refusals[] = {
        {"proxy-url",       "we connect to the server itself"                 },
        {"tls-server-name", "a server proves to be the one that its URL names"},
    };
    bool is_insecure;

    if (!read_text(reading, cluster, "server", &config->server) ||
        !read_flag(reading, cluster, "insecure-skip-tls-verify", &is_insecure) ||
        !refuse(reading, cluster, refusals, DV_COUNT(refusals)))
        return false;
    if (config->server.n == 0)
        return dv_fail(reading->err, DV_INVALID_ARGUMENT, "the cluster has no server");
    if (is_insecure)
        return dv_fail(reading->err, DV_INVALID_ARGUMENT,
                       "insecure-skip-tls-verify: we talk only to servers that prove themselves; "
                       "give certificate-authority");
    return read_data(reading, cluster, "certificate-authority", &config->ca);
}

static bool read_token_file(struct reading *reading, dv_str path, struct dv_kubeconfig *config)
{
    config->token_file = path;
    if (!dv_file_read(path, FILE_BYTES_MAX, reading->arena, &config->token, reading->err))
        return false;
    config->token = dv_str_trim(config->token);
    return config->token.n > 0 ||
           dv_fail(reading->err, DV_INVALID_ARGUMENT, "the token file %.*s is empty", DV_FMT(path));
}

/* What stands in the file counts before what a program would say. */
static bool read_exec(struct reading *reading, const struct dv_json *user,
                      struct dv_kubeconfig *config)
{
    struct dv_exec_plugin *plugin;

    if (!is_set(user, "exec") || config->token.n > 0 || config->cert.n > 0)
        return true;
    plugin = DV_NEW(reading->arena, struct dv_exec_plugin);
    config->exec = plugin;
    return dv_exec_plugin_parse(dv_json_get(user, DV_STR("exec")), config, reading->dir,
                                reading->arena, plugin, reading->err) ||
           dv_wrap(reading->err, "exec");
}

static bool read_user(struct reading *reading, const struct dv_json *user,
                      struct dv_kubeconfig *config)
{
    static const struct refusal refusals[] = {
        {"auth-provider", "nobody has them any more; give exec, a token, a tokenFile or a client "
                          "certificate"                },
        {"username",      "API servers take no passwords any more; give a token"},
        {"password",      "API servers take no passwords any more; give a token"},
        {"as",            "we do not act as somebody else"                      },
        {"as-uid",        "we do not act as somebody else"                      },
        {"as-groups",     "we do not act as somebody else"                      },
        {"as-user-extra", "we do not act as somebody else"                      },
    };
    dv_str file;

    if (!refuse(reading, user, refusals, DV_COUNT(refusals)) ||
        !read_text(reading, user, "token", &config->token) ||
        !read_text(reading, user, "tokenFile", &file))
        return false;
    if (file.n && !read_token_file(reading, path_of(reading, file), config))
        return dv_wrap(reading->err, "tokenFile");
    return read_data(reading, user, "client-certificate", &config->cert) &&
           read_data(reading, user, "client-key", &config->key) && read_exec(reading, user, config);
}

static bool is_own_host(dv_str url)
{
    static const char digits[] = "0123456789.";
    dv_str host = dv_str_slice(url, dv_str_find(url, DV_STR("//")) + 2, url.n);
    size_t n = 0;

    if (dv_str_starts_with(host, DV_STR("[::1]")))
        return true;
    host = dv_str_slice(host, 0, dv_str_find_char(host, '/'));
    host = dv_str_slice(host, 0, dv_str_find_char(host, ':'));
    while (n < host.n && host.p[n] != '\0' && strchr(digits, host.p[n]))
        n++;
    return dv_str_eq(host, DV_STR("localhost")) ||
           (n == host.n && dv_str_starts_with(host, DV_STR("127.")));
}

/* Refuses to send a token over plain HTTP: whoever listens on the way would have it. */
static bool check_plain(struct reading *reading, const struct dv_kubeconfig *config)
{
    return (config->token.n == 0 && !config->exec) ||
           dv_str_starts_with(config->server, DV_STR("https://")) || is_own_host(config->server) ||
           dv_fail(reading->err, DV_INVALID_ARGUMENT,
                   "server %.*s: a token is sent only under TLS, or on this machine",
                   DV_FMT(dv_str_slice(config->server, 0, 80)));
}

static bool read_context(struct reading *reading, const struct dv_json *doc, dv_str name,
                         struct dv_kubeconfig *config)
{
    const struct dv_json *context = NULL;
    const struct dv_json *cluster = NULL;
    const struct dv_json *user = NULL;
    dv_str cluster_name;
    dv_str user_name;

    if (!find(reading, doc, "contexts", "context", name, &context) ||
        !read_text(reading, context, "namespace", &config->namespace) ||
        !read_text(reading, context, "cluster", &cluster_name) ||
        !read_text(reading, context, "user", &user_name))
        return false;
    if (!find(reading, doc, "clusters", "cluster", cluster_name, &cluster) ||
        !read_cluster(reading, cluster, config))
        return false;
    return user_name.n == 0 || (find(reading, doc, "users", "user", user_name, &user) &&
                                read_user(reading, user, config) && check_plain(reading, config));
}

static bool read_config(struct reading *reading, const struct dv_json *doc, dv_str name,
                        struct dv_kubeconfig *config)
{
    if (name.n == 0 && !read_text(reading, doc, "current-context", &name))
        return false;
    if (name.n == 0)
        return dv_fail(reading->err, DV_INVALID_ARGUMENT, "it has no current-context");
    return read_context(reading, doc, name, config) ||
           dv_wrap(reading->err, "context \"%.*s\"", DV_FMT(dv_str_slice(name, 0, 80)));
}

bool dv_kubeconfig_parse(dv_str text, dv_str dir, dv_str context, struct dv_arena *arena,
                         struct dv_kubeconfig *config, struct dv_err *err)
{
    struct reading reading = {dir, arena, err};
    struct dv_kubeconfig fresh = {0};
    const struct dv_json *doc = dv_yaml_parse(text, NULL, arena, err);

    if (!doc)
        return dv_wrap(err, "kubeconfig");
    if (!read_config(&reading, doc, context, &fresh))
        return dv_wrap(err, "kubeconfig");
    *config = fresh;
    return true;
}

static bool run_exec(struct dv_kubeconfig *config, struct dv_arena *arena, struct dv_err *err)
{
    struct dv_exec_answer answer;

    if (!dv_exec_plugin_run(config->exec, NULL, arena, &answer, err))
        return false;
    config->token = answer.token;
    config->cert = answer.cert;
    config->key = answer.key;
    config->exec_ends_s = answer.ends_s;
    return true;
}

bool dv_kubeconfig_load(dv_str path, dv_str context, struct dv_arena *arena,
                        struct dv_kubeconfig *config, struct dv_err *err)
{
    size_t n = path.n;
    dv_str text;

    if (!dv_file_read(path, CONFIG_BYTES_MAX, arena, &text, err))
        return false;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    if (!dv_kubeconfig_parse(text, dv_str_slice(path, 0, n > 1 ? n - 1 : n), context, arena, config,
                             err))
        return dv_wrap(err, "%.*s", DV_FMT(path));
    return !config->exec || run_exec(config, arena, err) || dv_wrap(err, "%.*s", DV_FMT(path));
}

bool dv_kubeconfig_in_cluster(dv_str host, dv_str port, dv_str dir, struct dv_arena *arena,
                              struct dv_kubeconfig *config, struct dv_err *err)
{
    struct reading reading = {dir.n ? dir : DV_STR(ACCOUNT_DIR), arena, err};
    struct dv_kubeconfig fresh = {0};
    struct dv_err absent;

    if (host.n == 0 || port.n == 0)
        return dv_fail(err, DV_NOT_FOUND,
                       "not in a pod: KUBERNETES_SERVICE_HOST and _PORT are not set");
    fresh.server = dv_str_printf(
        arena, dv_str_find_char(host, ':') < host.n ? "https://[%.*s]:%.*s" : "https://%.*s:%.*s",
        DV_FMT(host), DV_FMT(port));
    if (!read_token_file(&reading, path_of(&reading, DV_STR("token")), &fresh) ||
        !dv_file_read(path_of(&reading, DV_STR("ca.crt")), FILE_BYTES_MAX, arena, &fresh.ca, err))
        return dv_wrap(err, "service account");
    if (dv_file_read(path_of(&reading, DV_STR("namespace")), FILE_BYTES_MAX, arena,
                     &fresh.namespace,
                     &absent)) /* the file may be missing: then the namespace is "default" */
        fresh.namespace = dv_str_trim(fresh.namespace);
    *config = fresh;
    return true;
}
