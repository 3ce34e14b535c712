#include "plugin/info.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/visible.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "plugin/guard.h"
#include "plugin/plugin.h"
#include "proto/registration_v1.pb-c.h"

bool dv_plugin_info_decode(dv_str message, dv_str socket, struct dv_arena *arena,
                           struct dv_plugin_info *info, struct dv_err *err)
{
    const RegistrationV1__PluginInfo *wire =
        dv_pb_decode(&registration_v1__plugin_info__descriptor, message, arena, err);
    dv_str *versions;

    if (!wire)
        return dv_wrap(err, "PluginInfo");
    versions = DV_NEW_ARRAY(arena, dv_str, wire->n_supported_versions);
    for (size_t i = 0; i < wire->n_supported_versions; i++)
        versions[i] = dv_str_from_c(wire->supported_versions[i]);
    *info = (struct dv_plugin_info){
        .socket = dv_str_copy(socket, arena),
        .type = dv_str_from_c(wire->type),
        .name = dv_str_from_c(wire->name),
        .endpoint = dv_str_from_c(wire->endpoint),
        .versions = versions,
        .n_versions = wire->n_supported_versions,
    };
    /* A plugin without an endpoint serves on the socket that it was asked on, as with the
     * kubelet. */
    if (info->endpoint.n == 0)
        info->endpoint = info->socket;
    return true;
}

void dv_plugin_info_copy(const struct dv_plugin_info *from, struct dv_arena *arena,
                         struct dv_plugin_info *to)
{
    dv_str *versions = DV_NEW_ARRAY(arena, dv_str, from->n_versions);

    for (size_t i = 0; i < from->n_versions; i++)
        versions[i] = dv_str_copy(from->versions[i], arena);
    *to = (struct dv_plugin_info){
        .socket = dv_str_copy(from->socket, arena),
        .type = dv_str_copy(from->type, arena),
        .name = dv_str_copy(from->name, arena),
        .endpoint = dv_str_copy(from->endpoint, arena),
        .versions = versions,
        .n_versions = from->n_versions,
        .peer = dv_policy_peer_copy(from->peer, arena),
    };
}

/* Checks a text that goes into the log and into answers: its length is bounded, and it has no
 * control characters. */
static bool check_text(const char *what, dv_str text, size_t max_bytes, struct dv_err *err)
{
    if (text.n > max_bytes)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%s of %zu bytes is longer than %zu: %.*s...",
                       what, text.n, max_bytes, DV_FMT(dv_str_slice(text, 0, 40)));
    return dv_str_is_visible(text) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "%s \"%.*s\" has a character that cannot be seen",
                   what, DV_FMT(text));
}

bool dv_plugin_info_check(const struct dv_plugin_info *info, struct dv_err *err)
{
    if (!check_text("type", info->type, DV_PLUGIN_TYPE_BYTES_MAX, err) ||
        !check_text("name", info->name, DV_PLUGIN_NAME_BYTES_MAX, err) ||
        !check_text("endpoint", info->endpoint, DV_SOCKET_PATH_MAX, err))
        return false;
    if (info->n_versions > DV_PLUGIN_VERSIONS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "%zu supported versions are more than %u",
                       info->n_versions, DV_PLUGIN_VERSIONS_MAX);
    for (size_t i = 0; i < info->n_versions; i++)
        if (!check_text("supported version", info->versions[i], DV_PLUGIN_VERSION_BYTES_MAX, err))
            return false;
    return true;
}

bool dv_plugin_endpoint_check_text(dv_str endpoint, struct dv_err *err)
{
    dv_str rest = endpoint;
    dv_str part = DV_STR("");

    if (!dv_str_starts_with(endpoint, DV_STR("/")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "endpoint \"%.*s\" is not an absolute path",
                       DV_FMT(endpoint));
    while (dv_str_split(&rest, '/', &part))
        if (dv_str_eq(part, DV_STR("..")) || dv_str_eq(part, DV_STR(".")))
            return dv_fail(err, DV_INVALID_ARGUMENT, "endpoint \"%.*s\" has \"%.*s\" in its path",
                           DV_FMT(endpoint), DV_FMT(part));
    /* The last part is empty when the path ends with a slash. */
    if (part.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "endpoint \"%.*s\" names a directory",
                       DV_FMT(endpoint));
    return true;
}

bool dv_plugin_is_inside(dv_str dir, dv_str path)
{
    /* The root is the only directory whose name ends with a slash. */
    if (dv_str_eq(dir, DV_STR("/")))
        return path.n > 1;
    return dv_str_starts_with(path, dir) && path.n > dir.n + 1 && path.p[dir.n] == '/';
}
