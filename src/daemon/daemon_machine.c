/* daemon_machine.c - reads the NUMA nodes of this machine and the id of its boot, and which
 * alignment the options ask for. */
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/daemon_options.h"
#include "daemon/daemon_parts.h"
#include "topology/topology.h"

/* A sysfs attribute is at most a page. */
#define SYSFS_BYTES_MAX 65536u
#define TOPOLOGY_OPTIONS_MAX 8u
/* A boot id is a UUID and the end of a line. */
#define BOOT_ID_BYTES_MAX 256u

static bool read_boot_id(struct dv_daemon *daemon, struct dv_err *err)
{
    if (!dv_file_read(daemon->options->boot_id_file, BOOT_ID_BYTES_MAX, daemon->arena,
                      &daemon->boot_id, err))
        return dv_wrap(err, "the id of this boot");
    daemon->boot_id = dv_str_trim(daemon->boot_id);
    return true;
}

bool dv_daemon_read_machine(struct dv_daemon *daemon, struct dv_err *err)
{
    dv_str dir = dv_daemon_path(daemon, daemon->options->sys_dir, "devices/system/node");
    dv_str online = DV_STR("0");
    struct dv_err absent;

    /* A kernel without NUMA has no such file: the machine then has one node. */
    if (!dv_file_read(dv_daemon_path(daemon, dir, "online"), SYSFS_BYTES_MAX, daemon->arena,
                      &online, &absent) &&
        absent.code != DV_NOT_FOUND) {
        *err = absent;
        return false;
    }
    if (!dv_topology_machine_parse(online, daemon->arena, &daemon->machine, err))
        return dv_wrap(err, "%.*s/online", DV_FMT(dir));
    for (size_t i = 0; i < daemon->machine.n_nodes; i++) {
        struct dv_numa_node *node = &daemon->machine.nodes[i];
        dv_str path = dv_str_printf(daemon->arena, "%.*s/node%u/distance", DV_FMT(dir), node->id);
        dv_str text;

        if (!dv_file_read(path, SYSFS_BYTES_MAX, daemon->arena, &text, &absent))
            /* Only the policy option prefer-closest needs the distances, and says so when they are
             * missing. */
            continue;
        if (!dv_topology_distances_parse(node, text, daemon->arena, err))
            return dv_wrap(err, "%.*s", DV_FMT(path));
    }
    return read_boot_id(daemon, err);
}

bool dv_daemon_configure_topology(struct dv_daemon *daemon, struct dv_err *err)
{
    const struct dv_options *options = daemon->options;
    struct dv_topology_option list[TOPOLOGY_OPTIONS_MAX];
    dv_str rest = options->topology_options;
    size_t n = 0;
    dv_str word;

    while (rest.n > 0 && dv_str_split(&rest, ',', &word)) {
        size_t equals = dv_str_find_char(word, '=');

        if (n == TOPOLOGY_OPTIONS_MAX)
            return dv_fail(err, DV_INVALID_ARGUMENT, "--topology-options: more than %u",
                           TOPOLOGY_OPTIONS_MAX);
        list[n++] = (struct dv_topology_option){dv_str_slice(word, 0, equals),
                                                dv_str_slice(word, equals + 1, word.n)};
    }
    if (!dv_topology_config_parse(options->topology_policy, options->topology_scope, list, n,
                                  &daemon->machine, &daemon->topology, err))
        return dv_wrap(err, "topology");
    if (daemon->topology.max_nodes > DV_TOPOLOGY_NODES_DEFAULT)
        dv_log(DV_LOG_WARN, "daemon: more than 8 NUMA nodes make admissions slower",
               DV_F_I64("nodes", daemon->topology.max_nodes));
    return true;
}
