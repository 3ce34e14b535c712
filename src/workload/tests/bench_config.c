/* bench_config.c - what the messages to a runtime cost, for one container.
 *
 * "plain" is a container with a command and nothing else; "large" has 1,000 variables, each of
 * which refers to another, and 50 services beside it. The best of some runs counts: the rest is
 * other programs. */
#include "workload/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "workload/workload.h"

#define RUNS 5u
#define ROUNDS 2000u
#define LARGE_ROUNDS 20u
#define VARIABLES 1000u
#define SERVICES 50u

static void must(bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    (void)fprintf(stderr, "bench_config: %s\n", err->msg);
    exit(1);
}

static void make(const struct dv_config_input *input, struct dv_arena *arena)
{
    struct dv_config_environment environment;
    struct dv_err err;

    must(dv_config_environment(input, arena, &environment, &err), &err);
    must(dv_config_container(input, &environment, NULL, DV_STR("/log"), arena, &err) != NULL, &err);
}

static void measure(const char *name, const struct dv_config_input *input, unsigned n_rounds)
{
    struct dv_arena *arena = dv_arena_new();
    double best_us = 0;

    for (unsigned run = 0; run < RUNS; run++) {
        uint64_t start = dv_clock_now_ns(dv_clock_real());
        double us;

        for (unsigned i = 0; i < n_rounds; i++) {
            dv_arena_reset(arena);
            make(input, arena);
        }
        us = (double)(dv_clock_now_ns(dv_clock_real()) - start) / 1000 / n_rounds;
        best_us = run == 0 || us < best_us ? us : best_us;
    }
    printf("config of a %s container: %.1f us\n", name, best_us);
    dv_arena_free(arena);
}

int main(void)
{
    static const bool links = true;
    static const struct dv_workload_port port = {.port = 80};
    struct dv_arena *arena = dv_arena_new();
    dv_str command[] = {DV_STR("sleep"), DV_STR("3600")};
    dv_str ip = DV_STR("10.1.0.5");
    struct dv_api_container container = {.name = DV_STR("c"),
                                         .image = DV_STR("busybox:1"),
                                         .command = command,
                                         .n_command = 2,
                                         .termination_message_path =
                                             DV_STR("/dev/termination-log")};
    struct dv_api_pod pod = {
        .spec = {.containers = &container, .n_containers = 1}
    };
    struct dv_workload_node node = {.root_dir = DV_STR("/var/lib/kubelet"), .cgroup_version = 2};
    struct dv_workload_pod workload = {
        .pod = &pod, .uid = DV_STR("u"), .ips = {&ip, 1}
    };
    struct dv_workload_service *services =
        DV_NEW_ARRAY(arena, struct dv_workload_service, SERVICES);
    struct dv_workload_objects objects = {.services = services, .n_services = 1};
    struct dv_config_input input = {
        .node = &node, .pod = &workload, .objects = &objects, .container = &container};

    pod.metadata = (struct dv_api_object_meta){.name = DV_STR("p"), .namespace = DV_STR("default")};
    pod.spec.enable_service_links = &links;
    services[0] = (struct dv_workload_service){.namespace = DV_STR("default"),
                                               .name = DV_STR("kubernetes"),
                                               .cluster_ip = DV_STR("10.0.0.1"),
                                               .ports = &port,
                                               .n_ports = 1};
    measure("plain", &input, ROUNDS);

    for (unsigned i = 1; i < SERVICES; i++) {
        services[i] = services[0];
        services[i].name = dv_str_printf(arena, "service-%u", i);
    }
    objects.n_services = SERVICES;
    container.n_env = VARIABLES;
    container.env = DV_NEW_ARRAY(arena, struct dv_api_env_var, VARIABLES);
    for (unsigned i = 0; i < VARIABLES; i++)
        container.env[i] =
            (struct dv_api_env_var){.name = dv_str_printf(arena, "V%u", i),
                                    .value = dv_str_printf(arena, "%u $(V%u)", i, i / 2)};
    measure("large", &input, LARGE_ROUNDS);
    dv_arena_free(arena);
    return 0;
}
