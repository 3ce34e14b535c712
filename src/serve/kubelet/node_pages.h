/* node_pages.h - lists of pods that the node's own API answers with, in parts that a worker
 * prints: pods may be megabytes each. */
#ifndef DV_SERVE_NODE_PAGES_H
#define DV_SERVE_NODE_PAGES_H

struct dv_agent;
struct dv_cri;
struct dv_loop;
struct dv_rest_call;

/* Answers with a PodList of the pods that this node has to run, with the status that the API has.
 * `agent` may be NULL. */
void dv_node_answer_pods(const struct dv_agent *agent, struct dv_loop *loop,
                         struct dv_rest_call *call);
/* Answers with a PodList of what runs: of each pod with a running container its names and those of
 * these containers. `cri` may be NULL. */
void dv_node_answer_running(const struct dv_cri *cri, struct dv_loop *loop,
                            struct dv_rest_call *call);

#endif
