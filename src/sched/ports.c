/* ports.c - host ports: which a pod wants, and which pods have taken on a node. Those of a node are
 * in the order of their numbers, so that a pod with thousands of them is quickly compared. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "sched/fit.h"

#define ANY_IP "0.0.0.0"

static void add_ports(struct dv_sched_ports *ports, const struct dv_api_container *container)
{
    for (size_t i = 0; i < container->n_ports; i++) {
        const struct dv_api_container_port *asked = &container->ports[i];
        dv_str ip = asked->host_ip.n > 0 ? asked->host_ip : DV_STR(ANY_IP);
        struct dv_sched_port *port;

        if (asked->host_port <= 0)
            continue;
        port = dv_vec_add(&ports->all);
        *port =
            (struct dv_sched_port){.number = asked->host_port,
                                   .protocol = asked->protocol.n > 0 ? asked->protocol.p[0] : 'T'};
        memcpy(port->ip, ip.p, dv_size_min(ip.n, sizeof(port->ip) - 1));
    }
}

void dv_sched_ports_read(struct dv_sched_ports *ports, const struct dv_api_pod_spec *pod)
{
    for (size_t i = 0; i < pod->n_containers; i++)
        add_ports(ports, &pod->containers[i]);
    /* Other init containers have ended before the pod's own containers begin, and the reference
     * does not count their ports. */
    for (size_t i = 0; i < pod->n_init_containers; i++)
        if (dv_str_eq(pod->init_containers[i].restart_policy, DV_STR("Always")))
            add_ports(ports, &pod->init_containers[i]);
}

/* The place of the first port of that number, or where it would be. */
static size_t find(const struct dv_sched_ports *taken, int64_t number)
{
    size_t low = 0;
    size_t high = taken->all.n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (taken->all.v[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void dv_sched_ports_take(struct dv_sched_ports *taken, const struct dv_sched_ports *ports)
{
    for (size_t i = 0; i < ports->all.n; i++) {
        size_t at = find(taken, ports->all.v[i].number);

        (void)dv_vec_add(&taken->all);
        memmove(&taken->all.v[at + 1], &taken->all.v[at],
                (taken->all.n - 1 - at) * sizeof(taken->all.v[0]));
        taken->all.v[at] = ports->all.v[i];
    }
}

static bool is_same(const struct dv_sched_port *a, const struct dv_sched_port *b)
{
    return a->number == b->number && a->protocol == b->protocol && strcmp(a->ip, b->ip) == 0;
}

void dv_sched_ports_give_back(struct dv_sched_ports *taken, const struct dv_sched_ports *ports)
{
    for (size_t i = 0; i < ports->all.n; i++) {
        const struct dv_sched_port *port = &ports->all.v[i];
        size_t at = find(taken, port->number);

        while (at < taken->all.n && !is_same(&taken->all.v[at], port))
            at++;
        if (at < taken->all.n)
            dv_vec_remove(&taken->all, at);
    }
}

static bool is_same_address(const struct dv_sched_port *a, const struct dv_sched_port *b)
{
    return strcmp(a->ip, b->ip) == 0 || strcmp(a->ip, ANY_IP) == 0 || strcmp(b->ip, ANY_IP) == 0;
}

bool dv_sched_ports_are_free(const struct dv_sched_ports *taken, const struct dv_sched_ports *ports)
{
    for (size_t i = 0; i < ports->all.n; i++) {
        const struct dv_sched_port *port = &ports->all.v[i];

        for (size_t at = find(taken, port->number);
             at < taken->all.n && taken->all.v[at].number == port->number; at++)
            if (taken->all.v[at].protocol == port->protocol &&
                is_same_address(&taken->all.v[at], port))
                return false;
    }
    return true;
}
