#include "lib/name.h"

#include <stddef.h>

#include "base/err.h"
#include "loop/loop.h"

/* "requests." and the part before the slash are a DNS name together, of at most 253 bytes. */
#define PREFIX_BYTES_MAX 244u
#define NAME_BYTES_MAX 63u
#define NODE_BYTES_MAX 253u

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* Labels of [a-z0-9-], separated by dots, that begin and end with a letter or digit. */
static bool is_dns_name(dv_str name)
{
    dv_str label;

    while (dv_str_split(&name, '.', &label)) {
        if (label.n == 0 || !is_lower(label.p[0]) || !is_lower(label.p[label.n - 1]))
            return false;
        for (size_t i = 0; i < label.n; i++)
            if (!is_lower(label.p[i]) && label.p[i] != '-')
                return false;
    }
    return true;
}

static bool is_name(dv_str name)
{
    if (name.n == 0 || !is_alnum(name.p[0]) || !is_alnum(name.p[name.n - 1]))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!is_alnum(name.p[i]) && name.p[i] != '-' && name.p[i] != '_' && name.p[i] != '.')
            return false;
    return true;
}

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
    if (prefix.n == 0 || prefix.n > PREFIX_BYTES_MAX || !is_dns_name(prefix))
        return refuse(err, name, "before the slash must be a lower-case DNS name");
    if (rest.n > NAME_BYTES_MAX || !is_name(rest))
        return refuse(err, name, "after the slash must be up to 63 letters, digits or -_.");
    return true;
}

bool dv_lib_driver_check(dv_str name, struct dv_err *err)
{
    if (name.n == 0 || name.n > NAME_BYTES_MAX || !is_dns_name(name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "driver name \"%.*s\" must be a lower-case DNS name of up to %u bytes",
                       DV_FMT(name), NAME_BYTES_MAX);
    return true;
}

bool dv_lib_node_check(dv_str name, struct dv_err *err)
{
    if (name.n == 0 || name.n > NODE_BYTES_MAX || !is_dns_name(name))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "node name \"%.*s\" must be a lower-case DNS name of up to %u bytes",
                       DV_FMT(name), NODE_BYTES_MAX);
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

/* The file's name without ".sock". */
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
