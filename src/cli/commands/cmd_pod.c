/* cmd_pod.c - admit, release, options: the life of a pod from the command line. */
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/documents.h"
#include "cli/client/pod_ref.h"
#include "cli/commands/options_as.h"
#include "proto/davit_node_v1.pb-c.h"
#include "json/json.h"

/* A pod is at most 3 MiB as JSON; YAML may be longer. */
#define POD_BYTES_MAX (16u << 20)

/* NAME, NAMESPACE/NAME, or --uid. */
static bool pod_ref(struct dv_cli *cli, const char *verb, NodeV1__PodRef *ref)
{
    dv_str name = cli->n_words > 0 ? cli->words[0] : DV_STR("");

    if ((name.n == 0) == (cli->uid.n == 0) || cli->n_words > 1) {
        (void)dv_cli_complain_usage(verb, "name one pod, or give --uid");
        return false;
    }
    dv_cli_pod_ref(cli, name, ref);
    return true;
}

/* davitd names a place in the JSON that it got: people want that in their file. */
static const char *place_in_file(struct dv_cli *cli, const char *message)
{
    dv_str text = dv_str_from_c(message);
    size_t from = dv_str_find(text, DV_STR("line 1, column "));
    dv_str rest = dv_str_slice(text, from, text.n);
    size_t colon = dv_str_find(rest, DV_STR(": "));
    dv_str path;

    if (from == text.n || colon == rest.n)
        return message;
    rest = dv_str_slice(rest, colon + 2, rest.n);
    path = dv_str_slice(rest, 0, dv_str_find(rest, DV_STR(": ")));
    return dv_str_to_c(dv_str_printf(cli->arena, "%.*s%.*s, line %u: %.*s",
                                     DV_FMT(dv_str_slice(text, 0, from)), DV_FMT(cli->file),
                                     dv_json_line(dv_cli_field_find(cli->verb_ctx, path)),
                                     DV_FMT(rest)),
                       cli->arena);
}

/* The pod of a file, YAML or JSON, as JSON. */
static bool read_pod(struct dv_cli *cli, struct dv_buf *json, struct dv_err *err)
{
    dv_str path = dv_str_eq(cli->file, DV_STR("-")) ? DV_STR("/dev/stdin") : cli->file;
    struct dv_json_opts opts = {.refuse_duplicates = true};
    struct dv_json *pod;
    dv_str text;

    if (!dv_file_read(path, POD_BYTES_MAX, cli->arena, &text, err))
        return false;
    pod = dv_yaml_parse(text, &opts, cli->arena, err); /* JSON is YAML, too */
    if (!pod)
        return dv_wrap(err, "%.*s", DV_FMT(cli->file));
    cli->verb_ctx = pod;
    cli->reword = place_in_file;
    dv_json_print(pod, NULL, json);
    return dv_buf_check(json, "pod", err);
}

static enum dv_exit print_admission(struct dv_cli *cli, const NodeV1__AdmitPodResponse *response)
{
    static const char *const headers[] = {"CONTAINER", "RESOURCE", "DEVICES"};
    struct dv_table table;

    if (!dv_cli_is_table(cli)) {
        dv_cli_print_message(cli, &response->base);
        return response->admitted ? DV_EXIT_OK : DV_EXIT_REFUSED;
    }
    if (!response->admitted) {
        (void)dv_cli_complain("pod %s/%s was refused: %s: %s", response->pod->namespace_,
                              response->pod->name, response->reason, response->message);
        return DV_EXIT_REFUSED;
    }
    (void)printf("pod %s/%s admitted, uid %s\n", response->pod->namespace_, response->pod->name,
                 response->pod->uid);
    dv_table_init(&table, cli->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < response->n_containers; i++) {
        const NodeV1__ContainerDevices *container = response->containers[i];

        for (size_t k = 0; k < container->n_resources; k++) {
            const NodeV1__ResourceDevices *resource = container->resources[k];
            dv_str ids = DV_STR("");

            for (size_t m = 0; m < resource->n_device_ids; m++)
                ids = dv_str_printf(cli->arena, "%.*s%s%s", DV_FMT(ids), m > 0 ? "," : "",
                                    resource->device_ids[m]);
            dv_table_add(&table, container->container);
            dv_table_add(&table, resource->resource);
            dv_table_add(&table, dv_str_to_c(ids, cli->arena));
        }
    }
    if (table.n_cells > table.n_columns)
        dv_table_print(&table, cli->has_headers);
    return DV_EXIT_OK;
}

enum dv_exit dv_cmd_admit(struct dv_cli *cli)
{
    NodeV1__AdmitPodRequest request = NODE_V1__ADMIT_POD_REQUEST__INIT;
    const NodeV1__AdmitPodResponse *response;
    struct dv_buf json;
    struct dv_err err;
    enum dv_exit exit;

    if (cli->file.n == 0 || cli->n_words > 0)
        return dv_cli_complain_usage("admit", "name the pod's file with -f");
    dv_buf_init(&json, POD_BYTES_MAX);
    if (!read_pod(cli, &json, &err)) {
        dv_buf_fini(&json);
        return dv_cli_complain("%s", err.msg);
    }
    request.pod.data = (uint8_t *)json.p;
    request.pod.len = json.n;
    if (cli->wait.n > 0) {
        if (!dv_str_to_u32(cli->wait, &request.wait_seconds)) {
            dv_buf_fini(&json);
            return dv_cli_complain_usage("admit", "--wait takes a number of seconds");
        }
        request.has_wait_seconds_case = NODE_V1__ADMIT_POD_REQUEST__HAS_WAIT_SECONDS_WAIT_SECONDS;
    }
    response = dv_cli_call(cli, "/davit.node.v1.Node/AdmitPod", &request.base,
                           &node_v1__admit_pod_response__descriptor, &exit);
    dv_buf_fini(&json);
    return response ? print_admission(cli, response) : exit;
}

enum dv_exit dv_cmd_release(struct dv_cli *cli)
{
    NodeV1__ReleasePodRequest request = NODE_V1__RELEASE_POD_REQUEST__INIT;
    NodeV1__PodRef ref = NODE_V1__POD_REF__INIT;
    const NodeV1__ReleasePodResponse *response;
    enum dv_exit exit;

    if (!pod_ref(cli, "release", &ref))
        return DV_EXIT_USAGE;
    request.pod = &ref;
    response = dv_cli_call(cli, "/davit.node.v1.Node/ReleasePod", &request.base,
                           &node_v1__release_pod_response__descriptor, &exit);
    if (!response)
        return exit;
    if (!dv_cli_is_table(cli))
        dv_cli_print_message(cli, &response->base);
    else
        (void)puts(response->was_known ? "released" : "no such pod here; nothing to release");
    return DV_EXIT_OK;
}

/* Plugins and drivers made these texts. */
static void print_options(const NodeV1__ContainerOptionsResponse *options, struct dv_arena *arena)
{
    dv_str line;

#define PRINT(...) (line = dv_str_printf(arena, __VA_ARGS__), (void)puts(dv_cli_plain(line, arena)))
    for (size_t i = 0; i < options->n_envs; i++)
        PRINT("env          %s=%s", options->envs[i]->key, options->envs[i]->value);
    for (size_t i = 0; i < options->n_devices; i++)
        PRINT("device       %s from %s (%s)", options->devices[i]->container_path,
              options->devices[i]->host_path, options->devices[i]->permissions);
    for (size_t i = 0; i < options->n_mounts; i++)
        PRINT("mount        %s from %s%s", options->mounts[i]->container_path,
              options->mounts[i]->host_path, options->mounts[i]->read_only ? " (read-only)" : "");
    for (size_t i = 0; i < options->n_annotations; i++)
        PRINT("annotation   %s=%s", options->annotations[i]->key, options->annotations[i]->value);
    for (size_t i = 0; i < options->n_cdi_devices; i++)
        PRINT("cdi          %s", options->cdi_devices[i]);
#undef PRINT
    if (options->n_envs + options->n_devices + options->n_mounts + options->n_annotations +
            options->n_cdi_devices ==
        0)
        (void)fputs("no options: its plugins and drivers give this container nothing\n", stderr);
}

enum dv_exit dv_cmd_options(struct dv_cli *cli)
{
    NodeV1__ContainerOptionsRequest request = NODE_V1__CONTAINER_OPTIONS_REQUEST__INIT;
    NodeV1__PodRef ref = NODE_V1__POD_REF__INIT;
    const NodeV1__ContainerOptionsResponse *response;
    enum dv_exit exit;

    if (!pod_ref(cli, "options", &ref))
        return DV_EXIT_USAGE;
    if (cli->as.n > 0 && !dv_cli_check_as(cli))
        return dv_cli_complain_usage(
            "options", "--as takes podman, docker, nerdctl or runc, and not %.*s", DV_FMT(cli->as));
    request.pod = &ref;
    request.container = dv_str_to_c(cli->container, cli->arena);
    response = dv_cli_call(cli, "/davit.node.v1.Node/ContainerOptions", &request.base,
                           &node_v1__container_options_response__descriptor, &exit);
    if (!response)
        return exit;
    if (cli->as.n > 0)
        return dv_cli_print_options_as(cli, response);
    if (!dv_cli_is_table(cli))
        dv_cli_print_message(cli, &response->base);
    else
        print_options(response, cli->arena);
    return DV_EXIT_OK;
}
