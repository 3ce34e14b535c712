/* cmd_container.c - container started, container ended: who starts containers tells davitd. */
#include <stdint.h>
#include <stdio.h>

#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/pod_ref.h"
#include "proto/davit_node_v1.pb-c.h"

/* What wait(2) can tell of a process: 0 to 255. */
#define EXIT_CODE_MAX 255u

static enum dv_exit tell_started(struct dv_cli *cli, NodeV1__PodRef *ref, dv_str container)
{
    NodeV1__ContainerStartedRequest request = NODE_V1__CONTAINER_STARTED_REQUEST__INIT;
    enum dv_exit exit;

    if (cli->exit_code.n > 0)
        return dv_cli_complain_usage("container", "--exit-code is of ended");
    if (cli->pid.n > 0 && (!dv_str_to_u32(cli->pid, &request.pid) || request.pid == 0))
        return dv_cli_complain_usage("container", "--pid takes the number of a process");
    request.pod = ref;
    request.container = dv_str_to_c(container, cli->arena);
    if (!dv_cli_call(cli, "/davit.node.v1.Node/ContainerStarted", &request.base,
                     &node_v1__container_started_response__descriptor, &exit))
        return exit;
    return DV_EXIT_OK;
}

static enum dv_exit tell_ended(struct dv_cli *cli, NodeV1__PodRef *ref, dv_str container)
{
    NodeV1__ContainerEndedRequest request = NODE_V1__CONTAINER_ENDED_REQUEST__INIT;
    uint32_t code;
    enum dv_exit exit;

    if (cli->pid.n > 0)
        return dv_cli_complain_usage("container", "--pid is of started");
    if (!dv_str_to_u32(cli->exit_code, &code) || code > EXIT_CODE_MAX)
        return dv_cli_complain_usage("container", "ended needs --exit-code CODE, 0 to 255");
    request.pod = ref;
    request.container = dv_str_to_c(container, cli->arena);
    request.exit_code = (int32_t)code;
    request.message = dv_str_to_c(cli->message, cli->arena);
    if (!dv_cli_call(cli, "/davit.node.v1.Node/ContainerEnded", &request.base,
                     &node_v1__container_ended_response__descriptor, &exit))
        return exit;
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_container(struct dv_cli *cli)
{
    static const struct {
        dv_str word;
        enum dv_exit (*run)(struct dv_cli *cli, NodeV1__PodRef *ref, dv_str container);
    } actions[] = {
        {DV_STR_INIT("started"), tell_started},
        {DV_STR_INIT("ended"),   tell_ended  },
    };
    NodeV1__PodRef ref = NODE_V1__POD_REF__INIT;
    size_t n_wanted = cli->uid.n > 0 ? 2 : 3;

    for (size_t i = 0; cli->n_words > 0 && i < DV_COUNT(actions); i++) {
        if (!dv_str_eq(cli->words[0], actions[i].word))
            continue;
        if (cli->n_words != n_wanted)
            return dv_cli_complain_usage("container",
                                         "name the pod, or give --uid, and then the container");
        dv_cli_pod_ref(cli, cli->uid.n > 0 ? DV_STR("") : cli->words[1], &ref);
        return actions[i].run(cli, &ref, cli->words[n_wanted - 1]);
    }
    return dv_cli_complain_usage("container", "say started or ended");
}
