/* affinity_topology.c - the labels of nodes that terms go by, and which value each node has. What a
 * node has is looked up when it is first asked for, and kept: a term with a new label costs nothing
 * for nodes that nobody asks about. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "affinity/affinity.h"
#include "affinity/affinity_index.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

struct dv_affinity_topology *dv_affinity_topology_get(struct dv_affinity *index, dv_str key)
{
    struct dv_affinity_topology *topology = dv_map_get(&index->topologies, key);
    char *at;

    if (topology)
        return topology;
    topology = dv_alloc(sizeof(*topology) + key.n);
    at = topology->text;
    topology->key = dv_str_put(key, &at);
    dv_map_init(&topology->domains);
    dv_map_set(&index->topologies, topology->key, topology);
    return topology;
}

void dv_affinity_topology_drop(struct dv_affinity *index, struct dv_affinity_topology *topology)
{
    const struct dv_map_entry *entry;

    if (topology->n_tallies > 0)
        return;
    dv_map_remove(&index->topologies, topology->key);
    for (size_t at = 0; (entry = dv_map_next(&topology->domains, &at));)
        free(entry->value);
    dv_map_fini(&topology->domains);
    dv_vec_fini(&topology->of_node);
    dv_vec_fini(&topology->unused);
    free(topology);
}

static struct dv_affinity_domain *new_domain(struct dv_affinity_topology *topology, dv_str value)
{
    struct dv_affinity_domain *domain = dv_alloc(sizeof(*domain) + value.n);
    char *at = domain->text;

    domain->value = dv_str_put(value, &at);
    if (topology->unused.n > 0)
        domain->number = topology->unused.v[--topology->unused.n];
    else
        domain->number = topology->n_numbers++;
    dv_map_set(&topology->domains, domain->value, domain);
    return domain;
}

static struct dv_affinity_domain *find(const struct dv_affinity_topology *topology,
                                       const struct dv_affinity_node *node, dv_str *value)
{
    const struct dv_str_entry *label =
        dv_entry_find(node->value->metadata.labels, node->value->metadata.n_labels, topology->key);

    *value = label ? label->value : DV_STR_NONE;
    return label ? dv_map_get(&topology->domains, label->value) : NULL;
}

static bool has_label(const struct dv_affinity_topology *topology,
                      const struct dv_affinity_node *node)
{
    return dv_entry_find(node->value->metadata.labels, node->value->metadata.n_labels,
                         topology->key) != NULL;
}

static uint32_t look_up(struct dv_affinity_topology *topology, const struct dv_affinity_node *node)
{
    struct dv_affinity_domain *domain;
    dv_str value;

    if (!has_label(topology, node))
        return DOMAIN_NONE;
    domain = find(topology, node, &value);
    if (!domain)
        domain = new_domain(topology, value);
    domain->n_nodes++;
    return domain->number + 1;
}

uint32_t dv_affinity_domain(struct dv_affinity_topology *topology,
                            const struct dv_affinity_node *node)
{
    uint32_t *known;

    while (topology->of_node.n <= node->place)
        *dv_vec_add(&topology->of_node) = 0;
    known = &topology->of_node.v[node->place];
    if (*known == 0)
        *known = look_up(topology, node);
    return *known == DOMAIN_NONE ? DOMAIN_NONE : *known - 1;
}

void dv_affinity_topology_forget(struct dv_affinity_topology *topology, size_t place,
                                 const struct dv_affinity_node *node, size_t n_nodes)
{
    uint32_t was = place < topology->of_node.n ? topology->of_node.v[place] : 0;
    struct dv_affinity_domain *domain;
    dv_str value;

    if (was != 0 && was != DOMAIN_NONE) {
        domain = find(topology, node, &value);
        if (--domain->n_nodes == 0) {
            dv_map_remove(&topology->domains, domain->value);
            *dv_vec_add(&topology->unused) = domain->number;
            free(domain);
        }
    }
    if (place < topology->of_node.n)
        topology->of_node.v[place] =
            topology->of_node.n == n_nodes ? topology->of_node.v[n_nodes - 1] : 0;
    if (topology->of_node.n == n_nodes)
        topology->of_node.n--;
}
