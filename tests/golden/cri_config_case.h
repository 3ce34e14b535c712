/* cri_config_case.h - what a recorded case of cri-config gives: the node, the pod, the objects in
 * its namespace, and what its containers were given. Placeholders of the corpus ("<uid>",
 * "<podIP>") are values like any other. */
#ifndef DV_GOLDEN_CRI_CONFIG_CASE_H
#define DV_GOLDEN_CRI_CONFIG_CASE_H

#include "base/str.h"
#include "workload/config.h"
#include "workload/workload.h"

struct dv_api_container;
struct dv_api_pod;
struct dv_arena;
struct dv_json;

struct cri_config_case {
    const struct dv_json *json;
    const struct dv_json *node_json;
    struct dv_arena *arena;
    const struct dv_api_pod *api;
    struct dv_workload_node node;
    struct dv_workload_pod pod;
    struct dv_workload_objects objects;
};

/* Reads node.json of the folder; the program ends when that is not what the README says. */
const struct dv_json *cri_config_read_node(const char *dir, struct dv_arena *arena);

/* Reads a case; the program ends when it is not what the README says. */
void cri_config_read(const struct dv_json *json, const struct dv_json *node_json,
                     struct dv_arena *arena, struct cri_config_case *made);

/* What plugins and claims gave to the container. Which devices of the sample plugin these are, the
 * recorded config tells (may be NULL). */
struct dv_workload_given *cri_config_given(const struct cri_config_case *of,
                                           const struct dv_api_container *container,
                                           const struct dv_json *recorded);

/* What ImageStatus tells of an image of the corpus. */
struct dv_config_image cri_config_image(dv_str reference, struct dv_arena *arena);

#endif
