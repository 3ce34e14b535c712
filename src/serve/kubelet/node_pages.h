/* node_pages.h - answers of the node's own API that are made at once. */
#ifndef DV_SERVE_NODE_PAGES_H
#define DV_SERVE_NODE_PAGES_H

struct dv_agent;
struct dv_buf;
struct dv_cri;

/* Prints a PodList of the pods that this node has to run, with the status that the API has. */
void dv_node_print_pods(const struct dv_agent *agent, struct dv_buf *buf);
/* Prints a PodList of what runs: of each pod with a running container its names and those of these
 * containers. `cri` may be NULL. */
void dv_node_print_running(const struct dv_cri *cri, struct dv_buf *buf);

#endif
