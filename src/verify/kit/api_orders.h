/* api_orders.h - how a worker asks the keeper's process for what its API has to do.
 *
 * A driver that runs already was given the address and the token of one API, so all cases of a run
 * have that one: it lives in a process of its own (api_keeper.h), and workers connect to it, one
 * after the other, by a socket in the directory of --attach. Both ends are the same program, so
 * what goes over the socket are structs, names, values as JSON, and objects as rows of a store.
 *
 *     worker  -- order, name, value ---------------->  keeper
 *             <- answer, rows or why it failed ------- */
#ifndef DV_VERIFY_API_ORDERS_H
#define DV_VERIFY_API_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "verify/kit/trial.h"
#include "verify/kit/trial_api.h"

struct dv_request;

enum dv_order_verb {
    DV_ORDER_BEGIN,   /* a case begins: trouble of the case before is over */
    DV_ORDER_REQUEST, /* a dv_request */
    DV_ORDER_LIST,
    DV_ORDER_AWAY,
    DV_ORDER_BACK,
    DV_ORDER_DISTURB,
    DV_ORDER_COUNTS,
};

/* What comes before the name and the value of an order. */
struct dv_order {
    uint32_t verb;        /* enum dv_order_verb */
    uint32_t request;     /* of DV_ORDER_REQUEST: enum dv_verb */
    uint32_t subresource; /* enum dv_subresource */
    uint32_t kind;        /* enum dv_kind_id */
    uint32_t n_conflicts; /* of DV_ORDER_DISTURB */
    uint32_t n_gone;
    uint32_t is_fresh; /* of DV_ORDER_BEGIN: the driver is started anew, and slices are removed */
    uint32_t n_name;   /* bytes */
    uint32_t n_text;
    struct dv_facts facts; /* of DV_ORDER_BEGIN */
};

/* What comes before the rows of an answer, each with its length before it, or before the text that
 * says why there are none. */
struct dv_order_answer {
    uint32_t has_failed;
    uint32_t n_objects;
    uint32_t n_bytes;
    struct dv_api_counts counts;
};

/* More than an API keeps of a driver's slices, and little enough to be taken at once. */
#define DV_ORDER_BYTES_MAX (64u << 20)

/* The worker's end. */
struct dv_orders {
    int fd;
    struct dv_buf body; /* of the newest answer */
    /* The newest list: while nothing changes it is asked for again and again, and is the same. */
    const struct dv_kind *listed; /* NULL: there was none */
    struct dv_buf listed_body;
    DV_VEC(struct dv_object *) objects;
};

/* The path of the keeper's socket, in the arena. */
dv_str dv_orders_path(const struct dv_trial *trial);

/* Adds an object with its length before it. */
void dv_orders_add_object(const struct dv_object *object, struct dv_buf *buf);

/* All of these end the trial when the keeper does not answer. */

/* Connects, and tells that a case begins. */
void dv_orders_begin(struct dv_trial *trial);
/* An order without a body: DV_ORDER_AWAY, DV_ORDER_BACK. */
void dv_orders_tell(struct dv_trial *trial, enum dv_order_verb verb);
void dv_orders_disturb(struct dv_trial *trial, unsigned n_conflicts, unsigned n_gone);
struct dv_api_counts dv_orders_counts(struct dv_trial *trial);
/* False: `failure` is the API's message. `object` is set where the request brings one. */
bool dv_orders_ask(struct dv_trial *trial, const struct dv_request *request,
                   struct dv_object **object, dv_str *failure);
size_t dv_orders_list(struct dv_trial *trial, const struct dv_kind *kind,
                      struct dv_object ***objects);

#endif
