#include "lib/common/lib_name.h"

#include <stddef.h>

#include "base/err.h"
#include "base/name.h"
#include "loop/loop.h"
#include "resource/validate.h"

/* "requests." and the part before the slash together are a DNS name, of at most 253 bytes. */
#define PREFIX_BYTES_MAX 244u
#define DRIVER_BYTES_MAX 63u

static bool refuse(struct dv_err *err, dv_str name, const char *why)
{
    return dv_fail(err, DV_INVALID_ARGUMENT, "resource name \"%.*s\": %s", DV_FMT(name), why);
}

bool dv_lib_resource_check(dv_str name, struct dv_err *err)
{
    size_t slash = dv_str_find_char(name, '/');
    dv_str prefix = dv_str_slice(name, 0, slash);
    dv_str rest = dv_str_slice(name, slash + 1, name.n);

    if (slash == name.n || dv_str_find_char(rest, '/') < rest.n)
        return refuse(err, name, "it must be like vendor.example/name");
    if (dv_str_find(name, DV_STR("kubernetes.io/")) < name.n)
        return refuse(err, name, "kubernetes.io is not for plugins");
    if (dv_str_starts_with(prefix, DV_STR("requests.")))
        return refuse(err, name, "it must not begin with requests.");
    if (prefix.n > PREFIX_BYTES_MAX || !dv_is_dns_subdomain(prefix))
        return refuse(err, name, "before the slash must be a lower-case DNS name");
    if (!dv_is_extended_resource_name(name))
        return refuse(err, name, "after the slash must be up to 63 letters, digits or -_.");
    return true;
}

bool dv_lib_driver_check(dv_str name, struct dv_err *err)
{
    if (name.n > DRIVER_BYTES_MAX || !dv_is_dns_subdomain(name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "driver name \"%.*s\" must be a lower-case DNS name of up to %u bytes",
                       DV_FMT(name), DRIVER_BYTES_MAX);
    return true;
}

bool dv_lib_node_check(dv_str name, struct dv_err *err)
{
    if (!dv_is_dns_subdomain(name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "node name \"%.*s\" must be a lower-case DNS name of up to 253 bytes",
                       DV_FMT(name));
    return true;
}

static bool check_file_name(dv_str name, struct dv_err *err)
{
    if (name.n == 0 || name.p[0] == '.' || dv_str_find_char(name, '/') < name.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "socket name \"%.*s\" must be a file name that begins with no dot",
                       DV_FMT(name));
    return true;
}

/* The name of the socket file without ".sock". */
static bool find_stem(dv_str name, dv_str resource, struct dv_arena *arena, dv_str *stem,
                      struct dv_err *err)
{
    size_t slash = dv_str_find_char(resource, '/');

    if (name.n == 0) {
        *stem = dv_str_printf(arena, "%.*s_%.*s", DV_FMT(dv_str_slice(resource, 0, slash)),
                              DV_FMT(dv_str_slice(resource, slash + 1, resource.n)));
        return true;
    }
    if (!check_file_name(name, err))
        return false;
    if (dv_str_eq(name, DV_STR("kubelet.sock")) ||
        dv_str_eq(name, DV_STR("kubelet_internal_checkpoint")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "socket name %.*s is the agent's own",
                       DV_FMT(name));
    *stem = dv_str_ends_with(name, DV_STR(".sock")) ? dv_str_slice(name, 0, name.n - 5) : name;
    return true;
}

static bool join(dv_str dir, dv_str stem, const char *end, struct dv_arena *arena, dv_str *path,
                 struct dv_err *err)
{
    bool has_slash = dv_str_ends_with(dir, DV_STR("/"));
    dv_str joined =
        dv_str_printf(arena, "%.*s%s%.*s%s", DV_FMT(dir), has_slash ? "" : "/", DV_FMT(stem), end);

    if (!dv_socket_path_check(joined, err))
        return false;
    *path = joined;
    return true;
}

bool dv_lib_path_join(dv_str dir, dv_str name, struct dv_arena *arena, dv_str *path,
                      struct dv_err *err)
{
    return check_file_name(name, err) && join(dir, name, "", arena, path, err);
}

bool dv_lib_socket_path(dv_str dir, dv_str name, dv_str resource, struct dv_arena *arena,
                        dv_str *path, struct dv_err *err)
{
    dv_str stem = DV_STR_NONE;

    return find_stem(name, resource, arena, &stem, err) &&
           (name.n > 0 ? join(dir, name, "", arena, path, err)
                       : join(dir, stem, ".sock", arena, path, err));
}

bool dv_lib_registry_path(dv_str dir, dv_str name, dv_str resource, struct dv_arena *arena,
                          dv_str *path, struct dv_err *err)
{
    dv_str stem = DV_STR_NONE;

    return find_stem(name, resource, arena, &stem, err) &&
           join(dir, stem, "-reg.sock", arena, path, err);
}

bool dv_lib_agent_path(dv_str dir, struct dv_arena *arena, dv_str *path, struct dv_err *err)
{
    return join(dir, DV_STR("kubelet"), ".sock", arena, path, err);
}

dv_str dv_lib_file_name(dv_str path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return dv_str_slice(path, at, path.n);
}
