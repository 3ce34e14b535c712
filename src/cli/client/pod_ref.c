#include "cli/client/pod_ref.h"

#include "base/str.h"
#include "cli/cli.h"
#include "proto/davit_node_v1.pb-c.h"

void dv_cli_pod_ref(struct dv_cli *cli, dv_str name, NodeV1__PodRef *ref)
{
    size_t slash = dv_str_find_char(name, '/');

    ref->uid = dv_str_to_c(cli->uid, cli->arena);
    if (slash < name.n) {
        ref->namespace_ = dv_str_to_c(dv_str_slice(name, 0, slash), cli->arena);
        ref->name = dv_str_to_c(dv_str_slice(name, slash + 1, name.n), cli->arena);
    } else {
        ref->namespace_ = dv_str_to_c(cli->namespace, cli->arena);
        ref->name = dv_str_to_c(name, cli->arena);
    }
}
