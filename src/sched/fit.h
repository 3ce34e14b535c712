/* fit.h - what a pod asks of a node, and whether the node has it. Pure. */
#ifndef DV_SCHED_FIT_H
#define DV_SCHED_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct dv_api_node;
struct dv_api_node_selector;
struct dv_api_pod_spec;
struct dv_api_taint;
struct dv_buf;
struct dv_object;
struct dv_str_entry;

/* ---- amounts ---- */

/* Resources are numbered: these first, all others in the order in which they are met. */
enum {
    DV_SCHED_RESOURCE_CPU, /* in thousandths */
    DV_SCHED_RESOURCE_MEMORY,
    DV_SCHED_RESOURCE_STORAGE,
    DV_SCHED_RESOURCE_PODS,
    DV_SCHED_N_FIXED_RESOURCES,
};

struct dv_sched_resource_name {
    uint32_t number;
    dv_str name;
};

struct dv_sched_resources {
    struct dv_map by_name; /* of struct dv_sched_resource_name */
    DV_VEC(struct dv_sched_resource_name *) names;
};

void dv_sched_resources_init(struct dv_sched_resources *resources);
void dv_sched_resources_fini(struct dv_sched_resources *resources);

/* The text of the longest IPv6 address, and a zero. */
#define DV_SCHED_IP_BYTES 46u

struct dv_sched_amount {
    uint32_t resource;
    /* A class serves this resource. On nodes that have none of it, it is no amount but a request
     * for devices. */
    bool is_served;
    int64_t n;
};

/* A port of a node's address that a pod takes for itself. */
struct dv_sched_port {
    char ip[DV_SCHED_IP_BYTES]; /* with a zero at its end; "0.0.0.0": of every address */
    char protocol;              /* its first letter: TCP, UDP or SCTP */
    int64_t number;
};

struct dv_sched_ports {
    DV_VEC(struct dv_sched_port) all; /* in no order of a pod, by number of a node */
};

struct dv_sched_amounts {
    DV_VEC(struct dv_sched_amount) all;
    struct dv_sched_ports ports;
    /* By the number of the resource: its place in `all`, from 1; 0: it is not asked for. */
    DV_VEC(uint32_t) places;
    int64_t scored[2]; /* cpu and memory, with a default for containers that ask for none */
};

void dv_sched_amounts_fini(struct dv_sched_amounts *amounts);
/* What the pod takes at most at any time of its life, one pod included. */
void dv_sched_amounts_read(struct dv_sched_amounts *amounts, struct dv_sched_resources *resources,
                           const struct dv_api_pod_spec *pod);

/* What a node has and what of it is taken, by the number of the resource. The ones that every pod
 * asks for are in the struct itself, and not behind a pointer: a decision looks at hundreds of
 * nodes. */
struct dv_sched_room {
    int64_t has[DV_SCHED_N_FIXED_RESOURCES];
    int64_t taken[DV_SCHED_N_FIXED_RESOURCES];
    int64_t scored[2];
    bool is_closed; /* unschedulable */
    bool has_taints;
    struct dv_sched_ports ports; /* that pods have taken */
    DV_VEC(int64_t) more_has;    /* from DV_SCHED_N_FIXED_RESOURCES */
    DV_VEC(int64_t) more_taken;
};

void dv_sched_room_fini(struct dv_sched_room *room);
void dv_sched_room_read(struct dv_sched_room *room, struct dv_sched_resources *resources,
                        const struct dv_api_node *node);
void dv_sched_room_take(struct dv_sched_room *room, const struct dv_sched_amounts *amounts);
void dv_sched_room_give_back(struct dv_sched_room *room, const struct dv_sched_amounts *amounts);
/* `copy` is zero or nothing yet; it has memory of its own. */
void dv_sched_room_copy(struct dv_sched_room *copy, const struct dv_sched_room *room);
int64_t dv_sched_room_has(const struct dv_sched_room *room, uint32_t resource);
int64_t dv_sched_room_taken(const struct dv_sched_room *room, uint32_t resource);

/* ---- ports: ports.c ---- */

/* Adds the host ports of the pod to what it asks for. */
void dv_sched_ports_read(struct dv_sched_ports *ports, const struct dv_api_pod_spec *pod);
void dv_sched_ports_take(struct dv_sched_ports *taken, const struct dv_sched_ports *ports);
void dv_sched_ports_give_back(struct dv_sched_ports *taken, const struct dv_sched_ports *ports);
/* Whether none of the ports is taken. */
bool dv_sched_ports_are_free(const struct dv_sched_ports *taken,
                             const struct dv_sched_ports *ports);

/* ---- filters ---- */

/* Whether the pod may run on the node, as far as name, selectors, taints, ports and amounts go.
 * When not, `why` gets the reasons in the reference's words, a line each. */
bool dv_sched_fits(const struct dv_api_pod_spec *pod, const struct dv_sched_amounts *amounts,
                   const struct dv_sched_resources *resources, const struct dv_object *node,
                   const struct dv_sched_room *room, struct dv_buf *why);

/* Whether the node takes new pods, or the pod tolerates that it does not. */
bool dv_sched_is_open(const struct dv_api_pod_spec *pod, const struct dv_sched_room *room);
/* Whether the pod's node selector and required affinity select the node. */
bool dv_sched_is_selected(const struct dv_api_pod_spec *pod, const struct dv_object *node);
/* The first label of the node selector that the node has not; NULL: it has all. */
const struct dv_str_entry *dv_sched_unselected(const struct dv_api_pod_spec *pod,
                                               const struct dv_object *node);
/* The node affinity that the pod requires; NULL: none. */
const struct dv_api_node_selector *dv_sched_required(const struct dv_api_pod_spec *pod);

/* ---- taints: tolerate.c ---- */

/* What it costs to match so many tolerations with so many taints, in the allocator's units. */
uint64_t dv_sched_tolerating_cost(size_t n_tolerations, size_t n_taints);
bool dv_sched_tolerates(const struct dv_api_pod_spec *pod, const struct dv_api_taint *taint);
/* How many taints of the node the pod does not tolerate: of those that only say "rather not", or of
 * the others, where one is enough. `first` may be NULL. */
size_t dv_sched_untolerated(const struct dv_api_pod_spec *pod, const struct dv_api_node *node,
                            bool is_rather_not, const struct dv_api_taint **first);

/* ---- scores ---- */

/* What speaks for a node, before it is compared with the others. Small, because a decision has
 * hundreds of them. */
struct dv_sched_merit {
    int32_t free;       /* 0 to 100: the share of cpu and memory that is left */
    int32_t preferred;  /* weights of the preferred terms that match */
    int32_t disliked;   /* taints that are not tolerated and only say "rather not" */
    int32_t preference; /* how far up the lists of alternatives the devices are */
    int32_t near;       /* weights of terms between pods, for it and against it */
    int32_t crowded;    /* how many pods are there that it rather be spread from; -1: unknown */
};

/* The largest and smallest of values that scores are measured against. */
struct dv_sched_best {
    struct dv_sched_merit high;
    int32_t near_low;
    int32_t crowded_low;
    bool is_related; /* `near` and `crowded` count */
};

/* A sum of weights as a merit keeps it: what is beyond counts as the most that it can. */
int32_t dv_sched_points(int64_t sum);
void dv_sched_merit(const struct dv_api_pod_spec *pod, const struct dv_sched_amounts *amounts,
                    const struct dv_object *node, const struct dv_sched_room *room,
                    struct dv_sched_merit *merit);
/* Takes the values into account; `best` is all zero at first. The second is for pods that look at
 * others. */
void dv_sched_merit_raise(struct dv_sched_best *best, const struct dv_sched_merit *merit);
void dv_sched_merit_relate(struct dv_sched_best *best, const struct dv_sched_merit *merit);
int64_t dv_sched_score(const struct dv_sched_merit *merit, const struct dv_sched_best *best);

/* How many nodes that fit are enough, of so many. */
size_t dv_sched_n_wanted(size_t n_nodes);

/* ---- why not ---- */

struct dv_sched_reason {
    dv_str text;
    size_t n_nodes;
};

/* How the reference ends the summary of a pod with claims, and of one without. */
#define DV_SCHED_STILL "still not schedulable"
#define DV_SCHED_NO_CLAIMS "no new claims to deallocate"

/* "0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims. still not
 * schedulable". `before` is a reason that is not of single nodes; it and `after` may be empty. */
void dv_sched_summary(size_t n_nodes, const struct dv_sched_reason *reasons, size_t n_reasons,
                      dv_str before, dv_str after, struct dv_buf *text);

/* What a condition or an event says behind the summary, which is davit's own sentence; without one,
 * all of it. */
dv_str dv_sched_sentence(dv_str message);

/* ---- back-off ---- */

/* After so many attempts in a row that failed: 1 s, doubled each time, at most 10 s. */
uint64_t dv_sched_backoff_ms(unsigned n_attempts);

#endif
