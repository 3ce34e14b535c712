/* cli_explain.c - the verdicts over nodes and devices, as text and as data. */
#include "cli/explain/cli_explain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/explain/world.h"
#include "resource/select.h"
#include "json/json.h"

/* The number of nodes that fit on a screen with the rest; --all prints the others. */
#define NODE_ROWS_MAX 20u
#define DEVICE_ROWS_MAX 10u
/* The cost of all searches together, some twenty seconds. When it is spent, each node still gets
 * half a second: what was found out on it before costs nothing the second time. */
#define COST_MAX (2 * DV_ALLOC_COST_MAX)
#define NODE_COST_MIN (DV_ALLOC_COST_MAX / 20)

/* What was found out about a node, and how far it is from fitting. */
struct verdict {
    const struct dv_alloc_node *node;
    enum dv_alloc_outcome outcome;
    dv_str summary;
    size_t n_passed; /* requests that the search came past */
    uint64_t n_lacking;
    enum dv_why nearest; /* of the devices that do not fit */
};

struct verdicts {
    struct verdict *v; /* the best first */
    size_t n;
    size_t n_fitting;
};

/* ---- judging ---- */

/* A claim that has its devices already, elsewhere; NULL: none. */
static const struct dv_api_resource_claim *foreign_claim(const struct dv_cli_wish *wish,
                                                         const struct dv_alloc_node *node)
{
    for (size_t i = 0; i < wish->allocated.n; i++) {
        const struct dv_api_node_selector *selector =
            wish->allocated.v[i]->status.allocation->node_selector;

        if (selector &&
            !dv_node_selector_matches(selector, node->name, node->labels, node->n_labels))
            return wish->allocated.v[i];
    }
    return NULL;
}

static void judge(const struct dv_cli_explain *explain, const struct dv_alloc_node *node,
                  uint64_t cost_max, struct dv_arena *arena, struct dv_explanation *explanation)
{
    const struct dv_alloc_options options = {.cost_max = cost_max};
    const struct dv_api_resource_claim *foreign = foreign_claim(explain->wish, node);

    if (foreign) {
        *explanation = (struct dv_explanation){
            .outcome = DV_ALLOC_NONE,
            .summary =
                dv_str_printf(arena, "claim %.*s/%.*s is allocated, and not for this node",
                              DV_FMT(foreign->metadata.namespace), DV_FMT(foreign->metadata.name)),
        };
        return;
    }
    dv_alloc_explain(explain->inventory, node, explain->wish->pending.v, explain->wish->pending.n,
                     &options, arena, explanation);
}

static void measure(const struct dv_explanation *explanation, struct verdict *verdict)
{
    verdict->nearest = DV_WHY_POOL_RIVAL;
    for (size_t i = 0; i < explanation->n_requests; i++) {
        const struct dv_why_request *request = &explanation->requests[i];

        if (!request->is_stuck)
            continue;
        verdict->n_passed = i;
        verdict->n_lacking =
            request->n_wanted > request->n_fitting ? request->n_wanted - request->n_fitting : 0;
        for (size_t k = 0; k < request->n_devices; k++)
            if (request->devices[k].why != DV_WHY_FITS &&
                request->devices[k].why != DV_WHY_TAKEN_HERE) {
                verdict->nearest = request->devices[k].why;
                break;
            }
        return;
    }
}

static int outcome_rank(enum dv_alloc_outcome outcome)
{
    static const int ranks[] = {
        [DV_ALLOC_DONE] = 0,        [DV_ALLOC_GAVE_UP] = 1, [DV_ALLOC_NONE] = 2,
        [DV_ALLOC_NODE_FAILED] = 3, [DV_ALLOC_FAILED] = 4,
    };

    return ranks[outcome];
}

static int by_nearness(const void *a, const void *b)
{
    const struct verdict *left = a;
    const struct verdict *right = b;

    if (left->outcome != right->outcome)
        return outcome_rank(left->outcome) < outcome_rank(right->outcome) ? -1 : 1;
    if (left->n_passed != right->n_passed)
        return left->n_passed > right->n_passed ? -1 : 1;
    if (left->nearest != right->nearest)
        return left->nearest < right->nearest ? -1 : 1;
    if (left->n_lacking != right->n_lacking)
        return left->n_lacking < right->n_lacking ? -1 : 1;
    return dv_str_cmp(left->node->name, right->node->name);
}

static struct verdicts judge_all(const struct dv_cli_explain *explain)
{
    const struct dv_cli_nodes *nodes = explain->nodes;
    struct verdicts verdicts = {
        .v = DV_NEW_ARRAY(explain->arena, struct verdict, nodes->n),
        .n = nodes->n,
    };

    uint64_t cost_left = COST_MAX;

    for (size_t i = 0; i < nodes->n; i++) {
        /* Every device of every node has a sentence: only what is shown is kept. */
        DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
        struct verdict *verdict = &verdicts.v[i];
        struct dv_explanation explanation;

        judge(explain, &nodes->v[i], dv_u64_max(cost_left, NODE_COST_MIN), scratch, &explanation);
        cost_left -= dv_u64_min(cost_left, explanation.cost);
        verdict->node = &nodes->v[i];
        verdict->outcome = explanation.outcome;
        verdict->summary = dv_str_copy(explanation.summary, explain->arena);
        measure(&explanation, verdict);
        verdicts.n_fitting += explanation.outcome == DV_ALLOC_DONE;
    }
    if (verdicts.n > 0)
        qsort(verdicts.v, verdicts.n, sizeof(struct verdict), by_nearness);
    return verdicts;
}

/* The allocation of the claims on a node that fits; NULL: it does not any more. */
static const struct dv_api_allocation_result *allocate(const struct dv_cli_explain *explain,
                                                       const struct dv_alloc_node *node)
{
    const struct dv_alloc_options options = {0};
    struct dv_alloc_result result;
    struct dv_err err;

    dv_allocate(explain->inventory, node, explain->wish->pending.v, explain->wish->pending.n,
                &options, explain->arena, &result, &err);
    return result.outcome == DV_ALLOC_DONE ? result.allocations : NULL;
}

/* ---- for people ---- */

static const char *plain(const struct dv_cli_explain *explain, dv_str text)
{
    return dv_cli_plain(text, explain->arena);
}

static void print_obstacles(const struct dv_cli_explain *explain, struct dv_buf *buf)
{
    const struct dv_cli_wish *wish = explain->wish;

    for (size_t i = 0; i < wish->obstacles.n; i++)
        dv_buf_printf(buf, "%s cannot be allocated: %s\n", plain(explain, wish->what),
                      plain(explain, wish->obstacles.v[i]));
}

static void print_results(const struct dv_cli_explain *explain, const struct dv_cli_claims *claims,
                          const struct dv_api_allocation_result *const *allocations,
                          struct dv_buf *buf)
{
    static const char *const headers[] = {"CLAIM", "REQUEST", "DRIVER", "POOL", "DEVICE"};
    struct dv_table table;

    dv_table_init(&table, explain->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < claims->n; i++) {
        const struct dv_api_device_allocation_result *devices = &allocations[i]->devices;

        for (size_t k = 0; k < devices->n_results; k++) {
            dv_table_add(&table, plain(explain, claims->v[i]->metadata.name));
            dv_table_add(&table, plain(explain, devices->results[k].request));
            dv_table_add(&table, plain(explain, devices->results[k].driver));
            dv_table_add(&table, plain(explain, devices->results[k].pool));
            dv_table_add(&table, plain(explain, devices->results[k].device));
        }
    }
    dv_table_print_to(&table, explain->has_headers, 0, buf);
}

static void print_allocated(const struct dv_cli_explain *explain, struct dv_buf *buf)
{
    const struct dv_cli_claims *claims = &explain->wish->allocated;
    const struct dv_api_allocation_result **allocations =
        DV_NEW_ARRAY(explain->arena, const struct dv_api_allocation_result *, claims->n);

    if (claims->n == 0)
        return;
    for (size_t i = 0; i < claims->n; i++) {
        allocations[i] = claims->v[i]->status.allocation;
        dv_buf_printf(buf, "claim %s/%s is allocated%s\n",
                      plain(explain, claims->v[i]->metadata.namespace),
                      plain(explain, claims->v[i]->metadata.name),
                      claims->v[i]->status.n_reserved_for > 0 ? " and reserved" : "");
    }
    dv_buf_add_char(buf, '\n');
    print_results(explain, claims, allocations, buf);
    if (explain->wish->pending.n > 0 && !explain->wish->is_hopeless)
        dv_buf_add_char(buf, '\n');
}

/* "3 taken, 1 fits" of the devices from `from` on */
static void print_counts(const struct dv_why_request *request, size_t from, struct dv_buf *buf)
{
    size_t i = from;

    while (i < request->n_devices) {
        enum dv_why why = request->devices[i].why; /* they are sorted by it */
        size_t n = 0;

        for (; i < request->n_devices && request->devices[i].why == why; i++)
            n++;
        dv_buf_printf(buf, "%zu %s%s", n, dv_why_name(why), i < request->n_devices ? ", " : "");
    }
}

static void print_request(const struct dv_cli_explain *explain,
                          const struct dv_why_request *request, struct dv_buf *buf)
{
    static const char *const headers[] = {"DEVICE", "WHY", "DETAIL"};
    size_t n =
        explain->is_all ? request->n_devices : dv_size_min(request->n_devices, DEVICE_ROWS_MAX);
    struct dv_table table;

    dv_buf_add_char(buf, '\n');
    if (explain->wish->pending.n > 1)
        dv_buf_printf(buf, "claim %s, ", plain(explain, request->claim));
    dv_buf_printf(buf, "request %s: %" PRIu64 " wanted", plain(explain, request->request),
                  request->n_wanted);
    if (request->n_devices == 0)
        dv_buf_add_c(buf, ", there are no devices");
    else
        dv_buf_printf(buf, " of %zu: ", request->n_devices);
    print_counts(request, 0, buf);
    dv_buf_add_char(buf, '\n');
    if (request->n_devices == 0)
        return;
    dv_table_init(&table, explain->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n; i++) {
        const struct dv_why_device *device = &request->devices[i];

        dv_table_add(
            &table,
            plain(explain, dv_str_printf(explain->arena, "%.*s/%.*s%s%.*s", DV_FMT(device->driver),
                                         DV_FMT(device->pool), device->device.n ? "/" : "",
                                         DV_FMT(device->device))));
        dv_table_add(&table, dv_why_name(device->why));
        dv_table_add(&table, plain(explain, device->text));
    }
    dv_table_print_to(&table, explain->has_headers, 0, buf);
    if (n < request->n_devices) {
        dv_buf_printf(buf, "and %zu more, which --all shows: ", request->n_devices - n);
        print_counts(request, n, buf);
        dv_buf_add_char(buf, '\n');
    }
}

static void print_node(const struct dv_cli_explain *explain, const struct verdict *verdict,
                       struct dv_buf *buf)
{
    const struct dv_cli_claims *claims = &explain->wish->pending;
    const struct dv_api_allocation_result **allocations;
    const struct dv_api_allocation_result *made;
    struct dv_explanation explanation;

    if (verdict->outcome != DV_ALLOC_DONE) {
        judge(explain, verdict->node, NODE_COST_MIN, explain->arena, &explanation);
        if (explanation.n_requests > 0)
            dv_buf_printf(buf, "\nOn %s:\n", plain(explain, verdict->node->name));
        for (size_t i = 0; i < explanation.n_requests; i++)
            print_request(explain, &explanation.requests[i], buf);
        return;
    }
    made = allocate(explain, verdict->node);
    if (!made)
        return;
    allocations = DV_NEW_ARRAY(explain->arena, const struct dv_api_allocation_result *, claims->n);
    for (size_t i = 0; i < claims->n; i++)
        allocations[i] = &made[i];
    dv_buf_printf(buf, "\nOn %s it would get:\n\n", plain(explain, verdict->node->name));
    print_results(explain, claims, allocations, buf);
}

/* The summary without the claim's name, when there is only one. */
static dv_str short_summary(const struct dv_cli_explain *explain, const struct verdict *verdict)
{
    dv_str prefix = dv_str_printf(explain->arena, "%.*s, ", DV_FMT(explain->wish->what));

    if (verdict->outcome == DV_ALLOC_DONE)
        return DV_STR_NONE;
    if (!dv_str_starts_with(verdict->summary, prefix))
        return verdict->summary;
    return dv_str_slice(verdict->summary, prefix.n, verdict->summary.n);
}

static void print_nodes(const struct dv_cli_explain *explain, const struct verdicts *verdicts,
                        struct dv_buf *buf)
{
    static const char *const headers[] = {"NODE", "FITS", "WHY"};
    size_t n = explain->is_all ? verdicts->n : dv_size_min(verdicts->n, NODE_ROWS_MAX);
    struct dv_table table;

    dv_table_init(&table, explain->arena, headers, DV_COUNT(headers));
    for (size_t i = 0; i < n; i++) {
        const struct verdict *verdict = &verdicts->v[i];

        dv_table_add(&table, plain(explain, verdict->node->name));
        dv_table_add(&table, verdict->outcome == DV_ALLOC_DONE ? "yes" : "no");
        dv_table_add(&table, plain(explain, short_summary(explain, verdict)));
    }
    dv_table_print_to(&table, explain->has_headers, 0, buf);
    if (n < verdicts->n)
        dv_buf_printf(buf, "and %zu more, which --all shows\n", verdicts->n - n);
}

static void print_verdicts(const struct dv_cli_explain *explain, const struct verdicts *verdicts,
                           struct dv_buf *buf)
{
    const char *what = plain(explain, explain->wish->what);
    bool fits = verdicts->n_fitting > 0;

    if (verdicts->n == 1)
        dv_buf_printf(buf, "%s %s be allocated on %s\n\n", what, fits ? "can" : "cannot",
                      plain(explain, verdicts->v[0].node->name));
    else if (fits)
        dv_buf_printf(buf, "%s can be allocated on %zu of %zu nodes\n\n", what, verdicts->n_fitting,
                      verdicts->n);
    else
        dv_buf_printf(buf, "%s cannot be allocated on any of %zu nodes\n\n", what, verdicts->n);
    print_nodes(explain, verdicts, buf);
    for (size_t i = 0; i < verdicts->n && (i == 0 || explain->is_all); i++)
        print_node(explain, &verdicts->v[i], buf);
}

bool dv_cli_explain_print(const struct dv_cli_explain *explain, struct dv_buf *buf)
{
    const struct dv_cli_wish *wish = explain->wish;
    struct verdicts verdicts;

    print_obstacles(explain, buf);
    print_allocated(explain, buf);
    if (wish->is_hopeless)
        return false;
    if (wish->pending.n == 0) {
        if (wish->obstacles.n == 0 && wish->allocated.n == 0)
            dv_buf_printf(buf, "%s has no claims\n", plain(explain, wish->what));
        return wish->obstacles.n == 0;
    }
    if (wish->obstacles.n > 0 && wish->allocated.n == 0)
        dv_buf_add_char(buf, '\n');
    verdicts = judge_all(explain);
    print_verdicts(explain, &verdicts, buf);
    return wish->obstacles.n == 0 && verdicts.n_fitting > 0;
}

/* ---- for programs ---- */

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(text, arena), arena);
}

static struct dv_json *allocation_node(const struct dv_api_resource_claim *claim,
                                       const struct dv_api_allocation_result *allocation,
                                       struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    set_text(object, "namespace", claim->metadata.namespace, arena);
    set_text(object, "name", claim->metadata.name, arena);
    if (allocation)
        dv_json_set(
            object, DV_STR("allocation"),
            dv_encode_json(&dv_message_allocation_result, allocation, NULL, DV_STR_NONE, arena),
            arena);
    return object;
}

static struct dv_json *request_node(const struct dv_why_request *request, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *devices = dv_json_new_array(arena);

    set_text(object, "claim", request->claim, arena);
    set_text(object, "request", request->request, arena);
    dv_json_set(object, DV_STR("wanted"), dv_json_new_u64(request->n_wanted, arena), arena);
    dv_json_set(object, DV_STR("fitting"), dv_json_new_u64(request->n_fitting, arena), arena);
    dv_json_set(object, DV_STR("isStuck"), dv_json_new_bool(request->is_stuck, arena), arena);
    for (size_t i = 0; i < request->n_devices; i++) {
        struct dv_json *device = dv_json_new_object(arena);

        set_text(device, "driver", request->devices[i].driver, arena);
        set_text(device, "pool", request->devices[i].pool, arena);
        if (request->devices[i].device.n)
            set_text(device, "device", request->devices[i].device, arena);
        set_text(device, "why", dv_str_from_c(dv_why_name(request->devices[i].why)), arena);
        set_text(device, "detail", request->devices[i].text, arena);
        dv_json_append(devices, device);
    }
    dv_json_set(object, DV_STR("devices"), devices, arena);
    return object;
}

static struct dv_json *verdict_node(const struct dv_cli_explain *explain,
                                    const struct verdict *verdict)
{
    static const char *const outcomes[] = {
        [DV_ALLOC_DONE] = "done",       [DV_ALLOC_NONE] = "none",
        [DV_ALLOC_FAILED] = "failed",   [DV_ALLOC_NODE_FAILED] = "node-failed",
        [DV_ALLOC_GAVE_UP] = "gave-up",
    };
    const struct dv_cli_claims *claims = &explain->wish->pending;
    struct dv_arena *arena = explain->arena;
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);
    bool fits = verdict->outcome == DV_ALLOC_DONE;
    const struct dv_api_allocation_result *made = fits ? allocate(explain, verdict->node) : NULL;
    struct dv_explanation explanation;

    set_text(object, "node", verdict->node->name, arena);
    dv_json_set(object, DV_STR("fits"), dv_json_new_bool(fits, arena), arena);
    set_text(object, "outcome", dv_str_from_c(outcomes[verdict->outcome]), arena);
    set_text(object, "summary", verdict->summary, arena);
    if (fits) {
        for (size_t i = 0; made && i < claims->n; i++)
            dv_json_append(list, allocation_node(claims->v[i], &made[i], arena));
        dv_json_set(object, DV_STR("claims"), list, arena);
        return object;
    }
    judge(explain, verdict->node, NODE_COST_MIN, arena, &explanation);
    for (size_t i = 0; i < explanation.n_requests; i++)
        dv_json_append(list, request_node(&explanation.requests[i], arena));
    dv_json_set(object, DV_STR("requests"), list, arena);
    return object;
}

bool dv_cli_explain_data(const struct dv_cli_explain *explain, struct dv_json **doc)
{
    const struct dv_cli_wish *wish = explain->wish;
    struct dv_arena *arena = explain->arena;
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *obstacles = dv_json_new_array(arena);
    struct dv_json *allocated = dv_json_new_array(arena);
    struct dv_json *nodes = dv_json_new_array(arena);
    struct verdicts verdicts = {0};
    bool ok;

    if (wish->pending.n > 0 && !wish->is_hopeless)
        verdicts = judge_all(explain);
    ok = wish->obstacles.n == 0 && (wish->pending.n == 0 || verdicts.n_fitting > 0);
    set_text(object, "subject", wish->what, arena);
    dv_json_set(object, DV_STR("canBeAllocated"), dv_json_new_bool(ok, arena), arena);
    for (size_t i = 0; i < wish->obstacles.n; i++)
        dv_json_append(obstacles, dv_json_new_str(wish->obstacles.v[i], arena));
    dv_json_set(object, DV_STR("obstacles"), obstacles, arena);
    for (size_t i = 0; i < wish->allocated.n; i++)
        dv_json_append(allocated, allocation_node(wish->allocated.v[i],
                                                  wish->allocated.v[i]->status.allocation, arena));
    dv_json_set(object, DV_STR("allocated"), allocated, arena);
    for (size_t i = 0; i < verdicts.n; i++)
        dv_json_append(nodes, verdict_node(explain, &verdicts.v[i]));
    dv_json_set(object, DV_STR("nodes"), nodes, arena);
    *doc = object;
    return ok;
}
