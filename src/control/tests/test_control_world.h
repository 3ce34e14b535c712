/* test_control_world.h - the controllers over the embedded API in memory, with requests that can
 * fail. */
#ifndef DV_CONTROL_TEST_CONTROL_WORLD_H
#define DV_CONTROL_TEST_CONTROL_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "control/control.h"
#include "resource/resource.h"
#include "support/api.h"

struct world {
    struct api api; /* the controllers have its front */
    struct dv_control_options options;
    struct dv_control *control; /* NULL: closed */
};

/* With the API and without the controllers. */
int start_world(void **state);
int end_world(void **state);
/* Opens the controllers and lets them come to rest. */
void open_control(struct world *world);
void close_control(struct world *world);

/* Objects as YAML. Each fails the test when the API refuses, and settles afterwards. */
struct dv_object *make(struct world *world, enum dv_kind_id kind, const char *namespace,
                       const char *yaml);
/* A merge patch, of the object or of its status. */
void change(struct world *world, enum dv_kind_id kind, const char *namespace, const char *name,
            const char *yaml);
void change_status(struct world *world, enum dv_kind_id kind, const char *namespace,
                   const char *name, const char *yaml);
/* A merge patch that may be refused: the code of the answer, 0 is success. */
int attempt(struct world *world, enum dv_kind_id kind, enum dv_subresource subresource,
            const char *namespace, const char *name, const char *yaml);
/* At once, also a pod; gone is fine. */
void destroy(struct world *world, enum dv_kind_id kind, const char *namespace, const char *name);
/* As users do: a pod that is on a node gets its grace. */
void delete_gently(struct world *world, enum dv_kind_id kind, const char *namespace,
                   const char *name);

/* NULL when absent; borrowed until the next turn. */
struct dv_object *look(struct world *world, enum dv_kind_id kind, const char *namespace,
                       const char *name);
const struct dv_api_pod *look_pod(struct world *world, const char *name);
const struct dv_api_resource_claim *look_claim(struct world *world, const char *name);
/* All of a kind in a namespace, in the order of their names; the number is returned. */
size_t list(struct world *world, enum dv_kind_id kind, const char *namespace,
            struct dv_object ***objects);
/* The only claim in "default" that was generated for that entry; NULL: none, fails when several. */
const struct dv_api_resource_claim *generated(struct world *world, const char *pod,
                                              const char *entry);
/* How often an event with that reason and message was told about the pod. */
size_t n_events(struct world *world, const char *pod, const char *reason, const char *message);

/* A text, until the end of the test. */
#define text(world, ...) api_text(&(world)->api, __VA_ARGS__)

void settle(struct world *world);
void pass(struct world *world, uint64_t ms);
void release_requests(struct world *world);

/* What most tests begin with. */
#define TEMPLATE                                                                                   \
    "{metadata: {name: t}, spec: {metadata: {labels: {l: v}, annotations: {a: b}}, "               \
    "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}}"
#define CLAIM(name)                                                                                \
    "{metadata: {name: " name "}, spec: {devices: {requests: [{name: r, exactly: "                 \
    "{deviceClassName: c}}]}}}"
/* `more` is more of the spec, with a comma before it. */
#define POD(name, claims, more)                                                                    \
    "{metadata: {name: " name "}, spec: {containers: [{name: c, image: pause}], "                  \
    "resourceClaims: [" claims "]" more "}}"
#define BY_TEMPLATE "{name: e, resourceClaimTemplateName: t}"
#define BY_NAME(name) "{name: e, resourceClaimName: " name "}"
#define ON_NODE ", nodeName: n1"
#define RESULT(device, more) "{request: r, driver: d.example, pool: p, device: " device more "}"
#define ALLOCATION(results) "allocation: {devices: {results: [" results "]}}"
#define FINALIZER "{metadata: {finalizers: [resource.kubernetes.io/delete-protection]}}"

/* The claim as a scheduler leaves it: finalizer, allocation, reserved for these pods by name. */
void allocate(struct world *world, const char *claim, const char *results, const char *pods);

#endif
