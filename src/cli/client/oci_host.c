#include "cli/client/oci_host.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "oci/oci.h"

static bool look(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                 struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct stat about;

    (void)host;
    if (lstat(dv_str_to_c(path, scratch), &about) < 0)
        return dv_fail_errno(err, errno, "%.*s", DV_FMT(path));
    return dv_oci_node_from_stat(about.st_mode, about.st_rdev, node, err) ||
           dv_wrap(err, "%.*s", DV_FMT(path));
}

const struct dv_oci_host dv_cli_machine = {look};
