#include "plugin/plugin_endpoint.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "plugin/info.h"

/* Finds where `path` leads: the part that exists is resolved, and the rest is appended. */
static bool resolve(dv_str path, struct dv_arena *arena, dv_str *resolved, struct dv_err *err)
{
    char real[PATH_MAX];
    struct stat info;
    size_t n = path.n;

    for (;;) {
        const char *prefix = dv_str_to_c(dv_str_slice(path, 0, n), arena);

        if (realpath(prefix[0] ? prefix : "/", real))
            break;
        if (errno != ENOENT)
            return dv_fail_errno(err, errno, "endpoint %.*s", DV_FMT(path));
        if (lstat(prefix, &info) == 0)
            return dv_fail(err, DV_PERMISSION_DENIED, "endpoint %.*s: %s is a link to nowhere",
                           DV_FMT(path), prefix);
        while (n > 0 && path.p[n - 1] != '/')
            n--;
        while (n > 0 && path.p[n - 1] == '/')
            n--;
    }
    *resolved = dv_str_printf(arena, "%s%.*s", strcmp(real, "/") == 0 ? "" : real,
                              DV_FMT(dv_str_slice(path, n, path.n)));
    return true;
}

bool dv_plugin_endpoint_check(dv_str endpoint, const dv_str *roots, size_t n_roots,
                              struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    char root[PATH_MAX];
    dv_str resolved = DV_STR("");
    bool is_link;

    if (!resolve(endpoint, arena, &resolved, err))
        return false;
    is_link = !dv_str_eq(resolved, endpoint);
    for (size_t i = 0; i < n_roots; i++)
        /* A root that is not there has nothing inside. */
        if (realpath(dv_str_to_c(roots[i], arena), root) &&
            dv_plugin_is_inside(dv_str_from_c(root), resolved))
            return true;
    if (n_roots == 0)
        return dv_fail(err, DV_PERMISSION_DENIED, "endpoint %.*s: none is allowed",
                       DV_FMT(endpoint));
    return dv_fail(err, DV_PERMISSION_DENIED, "endpoint %.*s%s%.*s%s is outside of %.*s%s",
                   DV_FMT(endpoint), is_link ? ", a link to " : "",
                   DV_FMT(is_link ? resolved : DV_STR("")), is_link ? "," : "", DV_FMT(roots[0]),
                   n_roots > 1 ? " and the other plugin directories" : "");
}
