/* What a plugin answers to GetInfo: what is accepted keeps every limit, leads straight to an
 * absolute path, and is the same when it is written and read again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "pb/pb.h"
#include "plugin/info.h"
#include "plugin/plugin.h"

#define SOCKET "/var/lib/kubelet/plugins_registry/fuzz.sock"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct dv_plugin_info *info, struct dv_buf *buf)
{
    dv_pb_add_bytes(buf, 1, info->type);
    dv_pb_add_bytes(buf, 2, info->name);
    dv_pb_add_bytes(buf, 3, info->endpoint);
    for (size_t i = 0; i < info->n_versions; i++)
        dv_pb_add_bytes(buf, 4, info->versions[i]);
}

static void check_same(const struct dv_plugin_info *a, const struct dv_plugin_info *b)
{
    assert(dv_str_eq(a->socket, b->socket) && dv_str_eq(a->type, b->type));
    assert(dv_str_eq(a->name, b->name) && dv_str_eq(a->endpoint, b->endpoint));
    assert(a->n_versions == b->n_versions);
    for (size_t i = 0; i < a->n_versions; i++)
        assert(dv_str_eq(a->versions[i], b->versions[i]));
}

static void check_accepted(const struct dv_plugin_info *info)
{
    dv_str path = info->endpoint;
    struct dv_err err;

    assert(dv_socket_path_check(path, &err)); /* what is accepted can be connected to */
    assert(path.p[0] == '/' && path.p[path.n - 1] != '/');
    assert(dv_str_find(path, DV_STR("/../")) == path.n && !dv_str_ends_with(path, DV_STR("/..")));
    assert(dv_plugin_is_inside(DV_STR("/"), path));
    assert(info->name.n <= DV_PLUGIN_NAME_BYTES_MAX && dv_str_is_utf8(info->name));
    assert(memchr(info->name.p, 0, info->name.n) == NULL);
    assert(info->n_versions <= DV_PLUGIN_VERSIONS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_plugin_info info;
    struct dv_plugin_info again;
    struct dv_plugin_info copy;
    struct dv_buf buf;
    struct dv_err err;
    bool is_info;

    if (size > DV_PLUGIN_INFO_BYTES_MAX ||
        !dv_plugin_info_decode((dv_str){(const char *)data, size}, DV_STR(SOCKET), arena, &info,
                               &err))
        return 0;
    dv_buf_init(&buf, 4u * DV_PLUGIN_INFO_BYTES_MAX);
    write_again(&info, &buf);
    is_info = dv_plugin_info_decode(dv_buf_str(&buf), DV_STR(SOCKET), arena, &again, &err);
    assert(is_info);
    check_same(&info, &again);
    dv_plugin_info_copy(&info, arena, &copy);
    check_same(&info, &copy);
    if (dv_plugin_info_check(&info, &err) && dv_plugin_endpoint_check_text(info.endpoint, &err))
        check_accepted(&info);
    dv_buf_fini(&buf);
    return 0;
}
