/* dra_options.c - what a driver is opened with: copied, completed, checked. */
#include "base/arena.h"
#include "base/err.h"
#include "davit/dra.h"
#include "lib/common/lib_name.h"
#include "lib/dra/dra.h"

/* How long slices that others changed stay changed: the reference's time. */
#define CORRECT_MS 30000u
#define INSTANCE_BYTES_MAX 64u

static const char *copy_text(const char *text, struct dv_arena *arena)
{
    return dv_str_to_c(dv_str_from_c(text), arena); /* empty: not given */
}

static void copy_owner(struct davit_dra *dra, const struct davit_dra_owner *from)
{
    if (!from)
        return;
    dra->owner = (struct davit_dra_owner){
        .api_version = copy_text(from->api_version, dra->arena),
        .kind = copy_text(from->kind, dra->arena),
        .name = copy_text(from->name, dra->arena),
        .uid = copy_text(from->uid, dra->arena),
    };
    dra->options.owner = &dra->owner;
}

static void copy_options(struct davit_dra *dra, const struct davit_dra_options *from)
{
    struct davit_dra_options *options = &dra->options;
    struct dv_arena *arena = dra->arena;

    *options = *from;
    options->driver = copy_text(from->driver, arena);
    options->node = copy_text(from->node, arena);
    options->node_uid = copy_text(from->node_uid, arena);
    options->kubeconfig = copy_text(from->kubeconfig, arena);
    options->instance = copy_text(from->instance, arena);
    options->socket_name = copy_text(from->socket_name, arena);
    options->registry_name = copy_text(from->registry_name, arena);
    options->only_pool = copy_text(from->only_pool, arena);
    options->plugin_dir = from->plugin_dir
                              ? copy_text(from->plugin_dir, arena)
                              : dv_str_printf(arena, "%s/%s", DAVIT_PLUGINS_DIR, options->driver).p;
    options->registry_dir =
        copy_text(from->registry_dir ? from->registry_dir : DAVIT_PLUGINS_REGISTRY_DIR, arena);
    options->lock_dir = copy_text(from->lock_dir ? from->lock_dir : options->plugin_dir, arena);
    if (options->correct_ms == 0)
        options->correct_ms = CORRECT_MS;
    copy_owner(dra, from->owner);
    dra->name = dv_str_from_c(options->driver);
    dra->node = dv_str_from_c(options->node);
}

static bool check_flags(const struct davit_dra_options *options, struct dv_err *err)
{
    unsigned none = DAVIT_DRA_NO_V1 | DAVIT_DRA_NO_V1BETA1;

    if (options->flags > (DAVIT_DRA_PUBLISH_ONLY << 1) - 1)
        return dv_fail(err, DV_INVALID_ARGUMENT, "flags: no such flag in 0x%x", options->flags);
    if (options->flags & DAVIT_DRA_PUBLISH_ONLY)
        return true;
    if ((options->flags & none) == none)
        return dv_fail(err, DV_INVALID_ARGUMENT, "no version of DRA is left to be offered");
    if (!options->prepare || !options->unprepare)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "a DRA driver needs a prepare and an unprepare callback");
    return true;
}

/* Checks the instance's name, which becomes a part of file names. */
static bool check_instance(dv_str instance, struct dv_err *err)
{
    bool is_good = instance.n <= INSTANCE_BYTES_MAX;

    for (size_t i = 0; i < instance.n && is_good; i++) {
        char c = instance.p[i];

        is_good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
    }
    return is_good || dv_fail(err, DV_INVALID_ARGUMENT,
                              "instance \"%.*s\" must be up to %u letters, digits or -_.",
                              DV_FMT(instance), INSTANCE_BYTES_MAX);
}

static bool check_options(const struct davit_dra *dra, struct dv_err *err)
{
    const struct davit_dra_options *options = &dra->options;

    if (!dv_lib_driver_check(dra->name, err) || !check_flags(options, err) ||
        !check_instance(dv_str_from_c(options->instance), err))
        return false;
    if (options->instance[0] != '\0' && options->registry_name[0] != '\0')
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "instance and registry_name: an instance has a name of its own");
    if (dra->node.n > 0 && !dv_lib_node_check(dra->node, err))
        return false;
    if (options->owner &&
        (options->owner->api_version[0] == '\0' || options->owner->kind[0] == '\0' ||
         options->owner->name[0] == '\0' || options->owner->uid[0] == '\0'))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "an owner has an api_version, a kind, a name and a uid");
    return true;
}

static bool make_paths(struct davit_dra *dra, dv_str *lock_path, struct dv_err *err)
{
    const struct davit_dra_options *options = &dra->options;
    struct dv_arena *arena = dra->arena;
    bool has_instance = options->instance[0] != '\0';
    dv_str registry = dv_str_from_c(options->registry_name);
    dv_str socket = dv_str_from_c(options->socket_name);

    if (registry.n == 0)
        registry = dv_str_printf(arena, "%s%s%s-reg.sock", options->driver, has_instance ? "-" : "",
                                 options->instance);
    if (socket.n == 0)
        socket = dv_str_printf(arena, "dra%s%s.sock", has_instance ? "-" : "", options->instance);
    dra->registry_endpoint.dir_path = dv_str_from_c(options->registry_dir);
    dra->service_endpoint.dir_path = dv_str_from_c(options->plugin_dir);
    *lock_path = has_instance && !(options->flags & DAVIT_DRA_PARALLEL)
                     ? dv_str_printf(arena, "%s/serialize.lock", options->lock_dir)
                     : DV_STR_NONE;
    if (!dv_lib_path_join(dra->registry_endpoint.dir_path, registry, arena,
                          &dra->registry_endpoint.path, err))
        return false;
    return options->flags & DAVIT_DRA_ONE_SOCKET ||
           dv_lib_path_join(dra->service_endpoint.dir_path, socket, arena,
                            &dra->service_endpoint.path, err);
}

bool dv_lib_dra_settle(struct davit_dra *dra, const struct davit_dra_options *from,
                       dv_str *lock_path, struct dv_err *err)
{
    *lock_path = DV_STR_NONE;
    copy_options(dra, from);
    if (!check_options(dra, err))
        return false;
    return dra->options.flags & DAVIT_DRA_PUBLISH_ONLY || make_paths(dra, lock_path, err);
}
