#include "sched/lack.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "sched/fit.h"

/* Of a requirement of affinity, which may list hundreds of values. */
#define REQUIREMENT_BYTES_MAX 120u

struct asking {
    const struct dv_api_pod_spec *pod;
    const struct dv_sched_amounts *amounts;
    const struct dv_sched_resources *resources;
    struct dv_arena *arena;
};

/* ---- amounts ---- */

/* "16", "500m", "64Gi" */
static dv_str print_amount(uint32_t resource, int64_t n, struct dv_arena *arena)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t unit = 0;

    if (resource == DV_SCHED_RESOURCE_CPU && n % 1000 != 0)
        return dv_str_printf(arena, "%" PRId64 "m", n);
    if (resource == DV_SCHED_RESOURCE_CPU)
        return dv_str_printf(arena, "%" PRId64, n / 1000);
    while ((resource == DV_SCHED_RESOURCE_MEMORY || resource == DV_SCHED_RESOURCE_STORAGE) &&
           n >= 1024 && n % 1024 == 0 && unit + 1 < DV_COUNT(units)) {
        n /= 1024;
        unit++;
    }
    return dv_str_printf(arena, "%" PRId64 "%s", n, units[unit]);
}

static int64_t left_of(const struct dv_sched_room *room, uint32_t resource)
{
    int64_t left = dv_sched_room_has(room, resource) - dv_sched_room_taken(room, resource);

    return left > 0 ? left : 0;
}

/* Whether the place has less than the amount. Where a class serves the resource and the node has
 * none of it, devices are given instead. */
static bool is_short(const struct dv_sched_place *place, const struct dv_sched_amount *amount)
{
    return amount->n > 0 && amount->n > left_of(place->room, amount->resource) &&
           !(amount->is_served && dv_sched_room_has(place->room, amount->resource) == 0);
}

/* Whether what plugins offer is short: it is told before cpu and memory. */
static bool comes_first(const struct dv_sched_amount *amount)
{
    return amount->resource >= DV_SCHED_N_FIXED_RESOURCES;
}

/* The place that has most of the resource, or most of it free; by name among equals. */
static const struct dv_sched_place *find_most(const struct dv_sched_place *places, size_t n,
                                              uint32_t resource, bool is_free)
{
    const struct dv_sched_place *most = NULL;
    int64_t n_most = -1;

    for (size_t i = 0; i < n; i++) {
        int64_t has = is_free ? left_of(places[i].room, resource)
                              : dv_sched_room_has(places[i].room, resource);

        if (most && (has < n_most || (has == n_most && dv_str_cmp(places[i].node->meta->name,
                                                                  most->node->meta->name) > 0)))
            continue;
        most = &places[i];
        n_most = has;
    }
    return most;
}

/* The sentence about an amount that no place has. */
static dv_str tell_short(const struct asking *asking, const struct dv_sched_place *places, size_t n,
                         const struct dv_sched_amount *amount)
{
    struct dv_arena *arena = asking->arena;
    dv_str name = asking->resources->names.v[amount->resource]->name;
    dv_str wanted = print_amount(amount->resource, amount->n, arena);
    const struct dv_sched_place *most = find_most(places, n, amount->resource, false);
    int64_t has = dv_sched_room_has(most->room, amount->resource);
    bool is_free = has >= amount->n;

    if (has <= 0)
        return dv_str_printf(arena, "pod wants %.*s: %.*s, no node has any", DV_FMT(name),
                             DV_FMT(wanted));
    if (amount->resource == DV_SCHED_RESOURCE_PODS)
        return dv_str_printf(arena, "no node has room for another pod, most is %" PRId64 " (%.*s)",
                             has, DV_FMT(most->node->meta->name));
    if (is_free) {
        most = find_most(places, n, amount->resource, true);
        has = left_of(most->room, amount->resource);
    }
    return dv_str_printf(arena, "pod wants %.*s: %.*s, most%s on a node is %.*s (%.*s)",
                         DV_FMT(name), DV_FMT(wanted), is_free ? " free" : "",
                         DV_FMT(print_amount(amount->resource, has, arena)),
                         DV_FMT(most->node->meta->name));
}

static bool is_short_everywhere(const struct dv_sched_place *places, size_t n,
                                const struct dv_sched_amount *amount)
{
    for (size_t i = 0; i < n; i++)
        if (!is_short(&places[i], amount))
            return false;
    return n > 0;
}

/* The amount that is short, everywhere or on a place; NULL: none is. */
static const struct dv_sched_amount *find_short(const struct asking *asking,
                                                const struct dv_sched_place *places, size_t n)
{
    const struct dv_sched_amount *found = NULL;

    for (size_t i = 0; i < asking->amounts->all.n; i++) {
        const struct dv_sched_amount *amount = &asking->amounts->all.v[i];

        if ((!found || (comes_first(amount) && !comes_first(found))) &&
            is_short_everywhere(places, n, amount))
            found = amount;
    }
    return found;
}

static dv_str tell_room(const struct asking *asking, const struct dv_sched_place *place,
                        const struct dv_sched_amount *amount)
{
    struct dv_arena *arena = asking->arena;
    dv_str node = place->node->meta->name;

    if (amount->resource == DV_SCHED_RESOURCE_PODS)
        return dv_str_printf(arena, "%.*s has no room for another pod, its most is %" PRId64,
                             DV_FMT(node), dv_sched_room_has(place->room, DV_SCHED_RESOURCE_PODS));
    return dv_str_printf(
        arena, "pod wants %.*s: %.*s, %.*s has %.*s free",
        DV_FMT(asking->resources->names.v[amount->resource]->name),
        DV_FMT(print_amount(amount->resource, amount->n, arena)), DV_FMT(node),
        DV_FMT(print_amount(amount->resource, left_of(place->room, amount->resource), arena)));
}

/* ---- which nodes are right ---- */

static dv_str tell_closed(const struct asking *asking, const struct dv_sched_place *place)
{
    dv_str node = place->node->meta->name;

    return dv_str_printf(asking->arena,
                         "%.*s is unschedulable, kubectl uncordon %.*s opens it to pods",
                         DV_FMT(node), DV_FMT(node));
}

static dv_str tell_taint(const struct asking *asking, const struct dv_sched_place *place)
{
    const struct dv_api_taint *taint = NULL;

    (void)dv_sched_untolerated(asking->pod, place->node->value, false, &taint);
    if (!taint)
        return DV_STR("");
    return dv_str_printf(asking->arena, "pod does not tolerate the taint %.*s%s%.*s:%.*s of %.*s",
                         DV_FMT(taint->key), taint->value.n > 0 ? "=" : "", DV_FMT(taint->value),
                         DV_FMT(taint->effect), DV_FMT(place->node->meta->name));
}

/* ", n1 has disk=hdd" */
static dv_str tell_wanted(const struct asking *asking, const struct dv_sched_place *place,
                          dv_str wanted, dv_str key)
{
    const struct dv_api_object_meta *meta = place->node->meta;
    const struct dv_str_entry *label = dv_entry_find(meta->labels, meta->n_labels, key);

    if (dv_str_eq(key, DV_STR("metadata.name")))
        return dv_str_printf(asking->arena, "pod wants a node with %.*s, %.*s is another",
                             DV_FMT(wanted), DV_FMT(meta->name));
    if (!label)
        return dv_str_printf(asking->arena, "pod wants a node with %.*s, %.*s has no such label",
                             DV_FMT(wanted), DV_FMT(meta->name));
    return dv_str_printf(asking->arena, "pod wants a node with %.*s, %.*s has %.*s=%.*s",
                         DV_FMT(wanted), DV_FMT(meta->name), DV_FMT(key), DV_FMT(label->value));
}

/* "zone In [a, b]" */
static dv_str print_requirement(const struct dv_api_node_selector_requirement *requirement,
                                struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;

    dv_buf_init(&text, REQUIREMENT_BYTES_MAX);
    dv_buf_printf(&text, "%.*s %.*s", DV_FMT(requirement->key), DV_FMT(requirement->operator));
    for (size_t i = 0; i < requirement->n_values; i++)
        dv_buf_printf(&text, "%s%.*s", i == 0 ? " [" : ", ", DV_FMT(requirement->values[i]));
    dv_buf_add_c(&text, text.is_over ? "" : requirement->n_values > 0 ? "]" : "");
    return dv_str_printf(arena, "%.*s%s", DV_FMT(dv_buf_str(&text)), text.is_over ? "..." : "");
}

static bool is_met(const struct dv_sched_place *place,
                   const struct dv_api_node_selector_term *alone)
{
    const struct dv_api_object_meta *meta = place->node->meta;
    struct dv_api_node_selector_term term = *alone;
    const struct dv_api_node_selector selector = {.node_selector_terms = &term,
                                                  .n_node_selector_terms = 1};

    return dv_node_selector_matches(&selector, meta->name, meta->labels, meta->n_labels);
}

/* The requirement of the term that the place does not meet; NULL: it meets all. */
static const struct dv_api_node_selector_requirement *
find_unmet(const struct dv_sched_place *place, const struct dv_api_node_selector_term *term)
{
    for (size_t i = 0; i < term->n_match_fields; i++)
        if (!is_met(place, &(struct dv_api_node_selector_term){
                               .match_fields = &term->match_fields[i], .n_match_fields = 1}))
            return &term->match_fields[i];
    for (size_t i = 0; i < term->n_match_expressions; i++)
        if (!is_met(place, &(struct dv_api_node_selector_term){.match_expressions =
                                                                   &term->match_expressions[i],
                                                               .n_match_expressions = 1}))
            return &term->match_expressions[i];
    return NULL;
}

/* What the node selector wants, or the first of the affinity's terms, any of which would do. */
static dv_str tell_selected(const struct asking *asking, const struct dv_sched_place *place)
{
    const struct dv_str_entry *label = dv_sched_unselected(asking->pod, place->node);
    const struct dv_api_node_selector *required = dv_sched_required(asking->pod);
    const struct dv_api_node_selector_requirement *unmet;

    if (label)
        return tell_wanted(
            asking, place,
            dv_str_printf(asking->arena, "%.*s=%.*s", DV_FMT(label->key), DV_FMT(label->value)),
            label->key);
    unmet = required && required->n_node_selector_terms > 0
                ? find_unmet(place, &required->node_selector_terms[0])
                : NULL;
    return unmet ? tell_wanted(asking, place, print_requirement(unmet, asking->arena), unmet->key)
                 : DV_STR("");
}

/* ---- the nearest ---- */

/* How far a pod came with a place, in the order of the filters. */
enum stage {
    AT_CLOSED,
    AT_TAINT,
    AT_SELECTOR,
    AT_ROOM,
    AT_OTHER, /* none of these: another filter has refused it */
};

static enum stage stage_of(const struct asking *asking, const struct dv_sched_place *place)
{
    if (!dv_sched_is_open(asking->pod, place->room))
        return AT_CLOSED;
    if (place->room->has_taints &&
        dv_sched_untolerated(asking->pod, place->node->value, false, NULL) > 0)
        return AT_TAINT;
    if (!dv_sched_is_selected(asking->pod, place->node))
        return AT_SELECTOR;
    return find_short(asking, place, 1) ? AT_ROOM : AT_OTHER;
}

static dv_str tell_place(const struct asking *asking, const struct dv_sched_place *place,
                         enum stage stage)
{
    switch (stage) {
    case AT_CLOSED:
        return tell_closed(asking, place);
    case AT_TAINT:
        return tell_taint(asking, place);
    case AT_SELECTOR:
        return tell_selected(asking, place);
    case AT_ROOM:
        return tell_room(asking, place, find_short(asking, place, 1));
    case AT_OTHER:
        break;
    }
    return DV_STR("");
}

/* Whether `place`, as far from the pod as `nearest`, is to be told in its stead: it has fewer
 * reasons, or the first name. */
static bool goes_before(const struct dv_sched_place *place, const struct dv_sched_place *nearest)
{
    size_t n = 0;
    size_t n_nearest = 0;

    for (size_t i = 0; i < place->why.n; i++)
        n += place->why.p[i] == '\n';
    for (size_t i = 0; i < nearest->why.n; i++)
        n_nearest += nearest->why.p[i] == '\n';
    if (n != n_nearest)
        return n < n_nearest;
    return dv_str_cmp(place->node->meta->name, nearest->node->meta->name) < 0;
}

/* Finds the place that lacks least, and what that is. */
static void find_nearest(const struct asking *asking, const struct dv_sched_places *places,
                         struct dv_sched_lack *lack)
{
    const struct dv_sched_place *nearest = NULL;
    enum stage nearest_stage = AT_CLOSED;

    for (size_t i = 0; i < places->n; i++) {
        const struct dv_sched_place *place = &places->v[i];
        enum stage stage = stage_of(asking, place);

        if (!nearest || stage > nearest_stage ||
            (stage == nearest_stage && goes_before(place, nearest))) {
            nearest = place;
            nearest_stage = stage;
        }
    }
    if (!nearest)
        return;
    lack->nearest = nearest;
    lack->text = tell_place(asking, nearest, nearest_stage);
    lack->is_amount = nearest_stage == AT_ROOM;
    for (size_t i = 0; i < places->n; i++)
        lack->n_as_near += dv_str_eq(places->v[i].why, nearest->why);
}

/* Adds that other nodes would do, were it not for a claim. */
static dv_str add_barred(dv_str text, size_t n_barred, struct dv_arena *arena)
{
    if (n_barred == 0)
        return text;
    if (text.n == 0 && n_barred == 1)
        return DV_STR("its allocated claim is not for the one node that is open to it");
    if (text.n == 0)
        return dv_str_printf(arena,
                             "its allocated claim is for none of the %zu nodes that are open to it",
                             n_barred);
    return dv_str_printf(arena, "%.*s; %zu other%s open to it, and not to its allocated claim",
                         DV_FMT(text), n_barred, n_barred == 1 ? " is" : "s are");
}

void dv_sched_lack_find(const struct dv_api_pod_spec *pod, const struct dv_sched_amounts *amounts,
                        const struct dv_sched_resources *resources,
                        const struct dv_sched_places *places, struct dv_arena *arena,
                        struct dv_sched_lack *lack)
{
    const struct asking asking = {pod, amounts, resources, arena};
    const struct dv_sched_amount *amount =
        places->n_barred == 0 ? find_short(&asking, places->v, places->n) : NULL;

    *lack = (struct dv_sched_lack){.text = DV_STR("")};
    if (amount) {
        lack->text = tell_short(&asking, places->v, places->n, amount);
        lack->is_amount = true;
        return;
    }
    find_nearest(&asking, places, lack);
    lack->text = add_barred(lack->text, places->n_barred, arena);
}
