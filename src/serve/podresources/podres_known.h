/* podres_known.h - what pods hold, as the answers of PodResources are made of it. Everything is in
 * the arena, or borrowed until the next turn. */
#ifndef DV_SERVE_PODRES_KNOWN_H
#define DV_SERVE_PODRES_KNOWN_H

#include "serve/podresources/podres_answer.h"

struct dv_arena;
struct dv_node;
struct dv_pod_view;

/* Describes a pod. */
struct dv_podres_pod dv_podres_known_pod(const struct dv_node *node, const struct dv_pod_view *view,
                                         struct dv_arena *arena);
/* Describes all pods, after what inactive ones held has been given back. */
struct dv_podres_node dv_podres_known_node(const struct dv_node *node, struct dv_arena *arena);

#endif
