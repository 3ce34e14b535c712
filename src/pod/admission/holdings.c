#include "pod/admission/holdings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "loop/loop.h"
#include "pod/admission/holdings_items.h"
#include "pod/admission/holdings_slices.h"
#include "pod/admission/pods.h"
#include "pod/ledger/finder.h"
#include "pod/ledger/ledger.h"
#include "pod/ledger/pod_identity.h"
#include "pod/pod.h"
#include "resource/resource.h"

/* A device node or a CDI name in a plugin's answer has about as many bytes, and takes as long. */
#define RESPONSE_BYTES_PER_DEVICE 32u

/* ---- CDI names ---- */

static bool resolve_device(struct dv_holdings *holdings, const struct dv_claim_record *claim,
                           dv_str driver, const struct dv_claim_device *device,
                           struct dv_arena *arena, struct dv_err *err)
{
    for (size_t i = 0; i < device->n_cdi_ids; i++) {
        struct dv_cdi_edits edits;

        if (!dv_cdi_dirs_resolve(holdings->pods->options.cdi, &device->cdi_ids[i], 1, arena, &edits,
                                 err)) {
            err->code = DV_NOT_FOUND;
            return dv_wrap(err, "driver %.*s, ResourceClaim %.*s/%.*s, device %.*s/%.*s",
                           DV_FMT(driver), DV_FMT(claim->namespace), DV_FMT(claim->name),
                           DV_FMT(device->pool), DV_FMT(device->name));
        }
    }
    return true;
}

bool dv_holdings_resolve(struct dv_holdings *holdings, const struct dv_pod *pod, struct dv_err *err)
{
    const struct dv_pods_options *options = &holdings->pods->options;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_claim **claims;
    size_t n;

    if (!options->claims || !options->cdi || options->is_strict || !pod->spec.object)
        return true;
    arena = dv_arena_new();
    n = dv_claim_of_pod(dv_claim_manager_state(options->claims), pod->spec.ref.uid, arena, &claims);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < claims[i]->record.n_drivers; k++)
            for (size_t d = 0; d < claims[i]->record.drivers[k].n_devices; d++)
                if (!resolve_device(holdings, &claims[i]->record, claims[i]->record.drivers[k].name,
                                    &claims[i]->record.drivers[k].devices[d], arena, err))
                    return false;
    return true;
}

/* ---- the ledger ---- */

static void hold(struct dv_holdings *holdings, const struct dv_holdings_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        dv_ledger_hold(holdings->ledger, &items->v[i].holder, items->v[i].identities.v,
                       items->v[i].identities.n);
}

/* Guesses which of the holder's devices has this identity, since an Allocate answer for several
 * does not say: the device whose id has it, else the first. */
static dv_str guess_id(const struct dv_ledger_holder *holder, const struct dv_identity *identity,
                       struct dv_arena *arena)
{
    for (size_t i = 0; i < holder->n_devices; i++) {
        struct dv_identity own;

        if (dv_identity_parse(holder->devices[i], arena, &own) && own.kind == identity->kind &&
            dv_str_eq(own.text, identity->text))
            return holder->devices[i];
    }
    for (size_t i = 0; i < holder->n_devices; i++)
        if (dv_str_ends_with(identity->text, dv_identity_device_of(holder->devices[i])))
            return holder->devices[i];
    return holder->devices[0];
}

static void name_rival(const struct dv_holdings_item *item,
                       const struct dv_ledger_conflict *conflict, struct dv_arena *arena,
                       struct dv_holdings_rival *rival)
{
    *rival = (struct dv_holdings_rival){.pod_uid = dv_str_copy(conflict->holder->pod_uid, arena)};
    if (item->holder.giver_kind != DV_LEDGER_PLUGIN || item->holder.n_devices == 0)
        return;
    rival->resource = dv_str_copy(item->holder.giver, arena);
    rival->id = dv_str_copy(guess_id(&item->holder, &conflict->identity, arena), arena);
}

/* Whether no item is held by another pod, or the mode allows that. */
static bool check_items(const struct dv_holdings *holdings, const struct dv_holdings_items *items,
                        struct dv_arena *arena, struct dv_holdings_rival *rival, struct dv_err *err)
{
    struct dv_ledger_conflict conflict;

    for (size_t i = 0; i < items->n; i++) {
        const struct dv_holdings_item *item = &items->v[i];

        if (dv_ledger_check(holdings->ledger, &item->holder, item->identities.v, item->identities.n,
                            &conflict))
            continue;
        if (dv_ledger_conflict_fail(&conflict, &item->holder, err) ||
            holdings->pods->options.ledger == DV_LEDGER_REFUSES) {
            name_rival(item, &conflict, arena, rival);
            return false;
        }
        dv_log(DV_LOG_WARN, "pod: a device is given twice, as --ledger=warn allows",
               DV_F_STR("pod", item->holder.name), DV_F_ERR(err));
    }
    return true;
}

/* ---- taking, in parts ---- */

struct dv_holdings_taking {
    struct dv_loop *loop;
    bool has_begun;   /* this is not the first part */
    size_t n_records; /* that are taken, or in `found` */
    struct dv_holdings_place place;
    bool is_learning; /* all are taken: what they tell about common nodes is learned */
    /* The identities of a long record: found in one part, taken in the next. */
    struct dv_holdings_items found;
    struct dv_arena *arena; /* of `found`; NULL: there is none */
};

static void drop_found(struct dv_holdings_taking *taking)
{
    dv_loop_free_arena(taking->loop, taking->arena);
    taking->arena = NULL;
    taking->found = (struct dv_holdings_items){0};
}

void dv_holdings_taking_free(struct dv_holdings_taking *taking)
{
    if (!taking)
        return;
    drop_found(taking);
    free(taking);
}

static size_t cost_of(const struct dv_device_record *record)
{
    size_t n = record->response.n / RESPONSE_BYTES_PER_DEVICE;

    for (size_t i = 0; i < record->n_placed; i++)
        n += record->placed[i].n_ids;
    return n;
}

/* Collects the items of the next records, as many as a turn has time for, and at last those of
 * claims. One record that takes longer is `found`, in a turn that does nothing else. False: there
 * is more. */
static bool collect(struct dv_holdings *holdings, const struct dv_pod *pod,
                    struct dv_holdings_taking *taking, struct dv_arena *arena,
                    struct dv_holdings_items *items)
{
    struct dv_finder *finder = dv_finder_new(arena);
    const struct dv_identity_host *host = dv_finder_host(finder);
    const struct dv_device_record *records;
    size_t n = dv_holdings_records(holdings, pod, arena, &records);
    size_t left = DV_HOLDINGS_COST_PER_TURN;
    bool may_be_long = taking->has_begun;
    bool is_end;

    for (; taking->n_records < n && cost_of(&records[taking->n_records]) <= left;
         taking->n_records++) {
        left -= cost_of(&records[taking->n_records]);
        may_be_long = false;
        dv_holdings_add_record(holdings, pod, &records[taking->n_records], host, arena, items);
    }
    is_end = taking->n_records >= n &&
             dv_holdings_add_claims(holdings, pod, &taking->place, left, host, arena, items);
    if (taking->n_records < n && may_be_long) {
        taking->arena = dv_arena_new();
        dv_holdings_add_record(holdings, pod, &records[taking->n_records++], host, taking->arena,
                               &taking->found);
    }
    dv_finder_fini(finder);
    return is_end;
}

static bool take_items(struct dv_holdings *holdings, const struct dv_holdings_items *items,
                       struct dv_arena *rival_arena, struct dv_holdings_rival *rival,
                       struct dv_err *err)
{
    if (!check_items(holdings, items, rival_arena, rival, err))
        return false;
    hold(holdings, items);
    return true;
}

static enum dv_holdings_taken take_found(struct dv_holdings *holdings,
                                         struct dv_holdings_taking *taking,
                                         struct dv_arena *rival_arena,
                                         struct dv_holdings_rival *rival, struct dv_err *err)
{
    bool is_taken = take_items(holdings, &taking->found, rival_arena, rival, err);

    drop_found(taking);
    return is_taken ? DV_HOLDINGS_PART : DV_HOLDINGS_IN_USE;
}

static enum dv_holdings_taken learn(struct dv_holdings *holdings, const struct dv_pod *pod)
{
    return dv_ledger_learn(holdings->ledger, pod->spec.ref.uid, DV_HOLDINGS_COST_PER_TURN)
               ? DV_HOLDINGS_ALL
               : DV_HOLDINGS_PART;
}

static enum dv_holdings_taken take_next(struct dv_holdings *holdings, const struct dv_pod *pod,
                                        struct dv_holdings_taking *taking,
                                        struct dv_arena *rival_arena,
                                        struct dv_holdings_rival *rival, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_holdings_items items = {0};
    bool is_end = collect(holdings, pod, taking, arena, &items);

    if (!take_items(holdings, &items, rival_arena, rival, err))
        return DV_HOLDINGS_IN_USE;
    taking->is_learning = is_end;
    return is_end && !taking->has_begun ? learn(holdings, pod) : DV_HOLDINGS_PART;
}

enum dv_holdings_taken dv_holdings_take(struct dv_holdings *holdings, const struct dv_pod *pod,
                                        struct dv_holdings_taking **taking,
                                        struct dv_arena *rival_arena,
                                        struct dv_holdings_rival *rival, struct dv_err *err)
{
    struct dv_holdings_taking first = {.loop = holdings->pods->loop};
    struct dv_holdings_taking *now = *taking ? *taking : &first;
    enum dv_holdings_taken taken;

    if (!holdings->ledger)
        return DV_HOLDINGS_ALL;
    if (now->is_learning)
        taken = learn(holdings, pod);
    else
        taken = now->arena ? take_found(holdings, now, rival_arena, rival, err)
                           : take_next(holdings, pod, now, rival_arena, rival, err);
    if (taken != DV_HOLDINGS_PART) {
        dv_holdings_taking_free(*taking);
        *taking = NULL;
        return taken;
    }
    now->has_begun = true;
    if (!*taking) {
        *taking = DV_ALLOC(struct dv_holdings_taking);
        **taking = first;
    }
    return taken;
}

/* ---- what is known beforehand ---- */

static bool looks_before(const struct dv_holdings *holdings)
{
    return holdings->ledger && holdings->pods->options.ledger == DV_LEDGER_REFUSES;
}

bool dv_holdings_reserve_claims(struct dv_holdings *holdings, const struct dv_pod *pod,
                                const struct dv_api_resource_claim *const *claims, size_t n_claims,
                                struct dv_arena *rival_arena, struct dv_holdings_rival *rival,
                                struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_holdings_items items = {0};

    if (!looks_before(holdings))
        return true;
    arena = dv_arena_new();
    for (size_t i = 0; i < n_claims; i++)
        (void)dv_holdings_add_results(holdings, pod, claims[i], arena, &items);
    if (!check_items(holdings, &items, rival_arena, rival, err))
        return false;
    hold(holdings, &items);
    return true;
}

static bool has_identity(const dv_str *ids, size_t n_ids, struct dv_arena *arena)
{
    struct dv_identity identity;

    for (size_t i = 0; i < n_ids; i++)
        if (dv_identity_parse(ids[i], arena, &identity))
            return true;
    return false;
}

bool dv_holdings_reserve_devices(struct dv_holdings *holdings, const struct dv_pod *pod,
                                 dv_str container, dv_str resource, const dv_str *ids, size_t n_ids,
                                 struct dv_arena *rival_arena, struct dv_holdings_rival *rival,
                                 struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_holdings_items items = {0};
    struct dv_holdings_item *item;
    dv_str *sorted;

    if (!looks_before(holdings))
        return true;
    arena = dv_arena_new();
    if (!has_identity(ids, n_ids, arena))
        return true; /* ids without an identity cannot conflict with anything */
    sorted = DV_NEW_ARRAY(arena, dv_str, n_ids); /* records have their ids sorted */
    memcpy(sorted, ids, n_ids * sizeof(ids[0]));
    qsort(sorted, n_ids, sizeof(sorted[0]), dv_str_compare);
    item = dv_holdings_add_item(&items, pod, DV_LEDGER_PLUGIN, resource, arena);
    item->holder.container = container;
    item->holder.devices = sorted;
    item->holder.n_devices = n_ids;
    for (size_t i = 0; i < n_ids; i++) {
        struct dv_identity identity;

        if (dv_identity_parse(sorted[i], arena, &identity))
            dv_identities_add(&item->identities, identity, arena);
    }
    if (!check_items(holdings, &items, rival_arena, rival, err))
        return false;
    hold(holdings, &items);
    return true;
}

void dv_holdings_give_back(struct dv_holdings *holdings, const struct dv_pod *pod)
{
    if (holdings->ledger)
        dv_ledger_release(holdings->ledger, pod->spec.ref.uid);
}

void dv_holdings_refresh(struct dv_holdings *holdings, const struct dv_pod *pod)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    struct dv_holdings_items items;

    if (!holdings->ledger)
        return;
    arena = dv_arena_new();
    items = dv_holdings_items_of(holdings, pod, arena);
    dv_ledger_release(holdings->ledger, pod->spec.ref.uid);
    hold(holdings, &items);
    (void)dv_ledger_learn(holdings->ledger, pod->spec.ref.uid, SIZE_MAX); /* is true */
}

void dv_holdings_rebuild(struct dv_holdings *holdings)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&holdings->pods->by_uid, &at)) != NULL;)
        if (((const struct dv_pod *)entry->value)->was_admitted)
            dv_holdings_refresh(holdings, entry->value);
}

/* ---- life ---- */

struct dv_holdings *dv_holdings_new(struct dv_pods *pods)
{
    struct dv_holdings *holdings = DV_ALLOC(struct dv_holdings);

    holdings->pods = pods;
    if (pods->options.ledger != DV_LEDGER_OFF)
        holdings->ledger = dv_ledger_new();
    return holdings;
}

void dv_holdings_free(struct dv_holdings *holdings)
{
    if (!holdings)
        return;
    dv_holdings_stop_learning(holdings);
    dv_holdings_slices_forget(&holdings->slices);
    if (holdings->slices.view)
        dv_view_close(holdings->slices.view);
    dv_ledger_free(holdings->ledger);
    free(holdings);
}

/* Drivers publish their slices only after davitd has started and they have registered, so pods that
 * were loaded from the store learn of their devices' attributes here. */
static void on_slice(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_holdings *holdings = ctx;

    (void)old;
    dv_holdings_slices_forget(&holdings->slices);
    if (now)
        dv_holdings_learn_slices(holdings);
}

bool dv_holdings_connect(struct dv_holdings *holdings, struct dv_cluster *cluster,
                         struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_view_options options = {
        .kind = dv_kind(DV_KIND_SLICE),
        .field_selector =
            dv_str_printf(arena, "spec.nodeName=%.*s", DV_FMT(holdings->pods->options.node_name)),
        .changed = on_slice,
        .ctx = holdings,
    };

    if (!holdings->ledger)
        return true;
    holdings->slices.view = dv_view_open(cluster, &options, err);
    return holdings->slices.view != NULL;
}
